// Fuzzes the answers of etcd: ranges, transactions and watches, some of them changed by the fuzzer.
// With any answers the sessions do not crash, hang or answer twice, and a session reports that it
// holds the lock only if a complete range answer proves it. While no answer was changed, two
// sessions never hold the lock at the same time.
#include <baton/error.h>

#include "common/seam/lock_name.h"
#include "common/recipe/queue_rule.h"
#include "etcd/path.h"
#include "etcd/queue.h"
#include "etcd/session.h"
#include "etcd_liar.h"
#include "fake_etcd_client.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace baton::fuzz {
namespace {

using std::chrono::milliseconds;

constexpr const char* kPrefix = "/app/job/";

// The queue rule, written a second time in a simple way. The range answer must be complete, contain
// the client's own key with the right create revision, and contain no older entry.
bool proves_holder(const etcdpb::RangeResponse& reading, const std::string& key,
                   std::uint64_t token) {
  const auto mine = static_cast<std::int64_t>(token);
  bool there = false;
  for (const auto& kv : reading.kvs()) {
    const std::string_view name = kv.key();
    const bool direct = name.size() > std::string_view(kPrefix).size() &&
                        name.starts_with(kPrefix) &&
                        name.find('/', std::string_view(kPrefix).size()) == name.npos;
    if (name == key) {
      there = there || kv.create_revision() == mine;
    } else if (direct && kv.create_revision() < mine) {
      return false;
    }
  }
  return there && !reading.more();
}

// Checks read_queue() with any range answer.
void check_rule(Input& in) {
  etcdpb::RangeResponse reading;
  if (!reading.ParseFromString(in.text())) return;
  for (int n = 0; n < 4; ++n) reading.MergeFromString(in.text());
  const std::uint64_t token = in.edge() & ~(std::uint64_t{1} << 63);
  const std::string key = in.flag() && reading.kvs_size() > 0
                              ? reading.kvs(0).key()
                              : etcd::entry_key(kPrefix, 0x1234, etcd::KeySlot{7});
  if (!etcd::is_direct_entry(kPrefix, key)) return;
  const auto result = etcd::read_queue(kPrefix, key, token, Nonce{7}, reading);
  const auto judged = judge(result.standing.view, Nonce{7});
  FUZZ_REQUIRE(!result.incomplete || judged.verdict == Verdict::missing);
  FUZZ_REQUIRE((judged.verdict == Verdict::holder) == proves_holder(reading, key, token));
  if (judged.verdict == Verdict::waiting) {
    const auto id = etcd::parse_entry_id(judged.predecessor->id);
    const bool shown =
        std::any_of(reading.kvs().begin(), reading.kvs().end(), [&](const etcdpb::KeyValue& kv) {
          return etcd::format_entry_id(kPrefix, kv.key(), kv.create_revision()) ==
                 judged.predecessor->id;
        });
    FUZZ_REQUIRE(shown && id.has_value());
  }
}

void check_value(const std::string& text) {
  using std::chrono::system_clock;
  if (const auto value = etcd::decode_value(text)) {
    FUZZ_REQUIRE(text.starts_with("baton/1 ") && value->label.size() <= 256);
    const auto again = etcd::decode_value(etcd::encode_value(value->label, value->since));
    FUZZ_REQUIRE(again && again->label == value->label && again->since == value->since);
  }
  const auto now = system_clock::time_point(std::chrono::seconds(1'700'000'000));
  const auto made = etcd::decode_value(etcd::encode_value(text, now));
  FUZZ_REQUIRE(made && made->label == text.substr(0, 256) && made->since == now);
  const etcd::CallResult verdict{static_cast<int>(text.size() % 20), text};
  const auto status = etcd::status_of(verdict);
  FUZZ_REQUIRE((status == etcd::Status::ok) == (verdict.code == 0));
  FUZZ_REQUIRE(etcd::call_error(status, verdict, "x").what()[0] != '\0');
}

class Peer final : private SessionListener {
 public:
  Peer(FakeEtcd& etcd, Input& in) : wire(etcd, in), loop_(manual_loop(etcd)) {
    etcd::SessionParts parts;
    parts.link = fake_link_parts(loop_, wire, cluster_state_);
    parts.root = "/app";
    parts.label = "the label";
    parts.session_timeout = milliseconds(6'000);
    SessionListener& listener = *this;
    session_ = std::make_unique<etcd::Session>(
        std::move(parts), listener,
        [this](Result<Done> done) { opened_ = opened_ || done.has_value(); });
    pass();
    FUZZ_REQUIRE(opened_);
  }
  ~Peer() override {
    loop_.step([&] { session_.reset(); });
  }

  // Sends a request and lets time pass. Empty: there was no answer within a second.
  template <class T, class F>
  std::optional<Result<T>> ask(F question) {
    auto asked = std::make_shared<Asked<T>>();
    auto inside = std::make_shared<bool>(true);
    loop_.step([&] {
      question(*session_, Answer<T>([asked, inside](Result<T> result) {
        FUZZ_REQUIRE(!*inside);
        FUZZ_REQUIRE(++asked->answers == 1);
        asked->got.emplace(std::move(result));
      }));
      *inside = false;
    });
    for (int n = 0; n < 50 && !asked->got; ++n) pass();
    return asked->got;
  }
  void pass(milliseconds span = milliseconds(20)) {
    loop_.step(nullptr);
    loop_.advance(span);
  }
  etcd::Session& session() { return *session_; }
  bool over() const noexcept { return over_; }

  LyingWire wire;

 private:
  void session_ended(std::error_code, const std::string&) override {
    FUZZ_REQUIRE(!over_);  // the end is reported once
    over_ = true;
  }
  void session_resumed() override {}

  ManualLoop& loop_;
  etcd::ClusterState cluster_state_;
  bool opened_ = false;
  bool over_ = false;
  std::unique_ptr<etcd::Session> session_;
};

struct OurTicket {
  std::size_t peer;
  std::uint64_t nonce;
};

class World {
 public:
  explicit World(Input& in) : in_(in), etcd_(loop_, 2) {}

  void run() {
    for (int keys = in_.byte() % 6; keys > 0; --keys) {
      const auto value = in_.text();
      check_value(value);
      etcd_.put(kPrefix + in_.text() + (in_.flag() ? "x" : "below/x"), 0, value);
    }
    peers_.push_back(std::make_unique<Peer>(etcd_, in_));
    peers_.push_back(std::make_unique<Peer>(etcd_, in_));
    for (int steps = 0; steps < 24 && !in_.empty(); ++steps) {
      step();
      check();
    }
    peers_.clear();
  }

 private:
  bool lied() const {
    return std::any_of(peers_.begin(), peers_.end(), [](auto& p) { return p->wire.lied(); });
  }

  void step() {
    const std::uint8_t what = in_.byte();
    const std::size_t who = (what >> 4) & 1;
    Peer& peer = *peers_[who];
    if (peer.over()) return;
    const auto name = parse_lock_name("job").value();
    switch (what & 15) {
      case 0:
        peer.wire.lies = true;
        return;
      case 1:
        peer.wire.lies = false;
        return;
      case 2:
        peer.wire.inner().break_streams();
        peer.pass();
        return;
      case 3: {  // an operator removes a key, or a client that is not ours leaves
        const auto keys = etcd_.keys(kPrefix);
        if (!keys.empty()) etcd_.remove(keys[in_.byte() % keys.size()]);
        peer.pass();
        return;
      }
      case 4:
        peer.pass(milliseconds(10 * in_.byte()));
        return;
      case 5:
        peer.ask<LockSnapshot>([&](auto& s, auto a) { s.inspect(name, std::move(a)); });
        return;
      case 6:
        peer.ask<std::vector<std::string>>([&](auto& s, auto a) { s.list("", std::move(a)); });
        return;
      case 7:
      case 8:
        leave(who, name);
        return;
      case 9: {
        const auto entry = in_.text();
        peer.ask<bool>([&](auto& s, auto a) { s.evict(name, entry, std::move(a)); });
        return;
      }
      default:
        if (tickets_.size() < 6) join(who, name);
        return;
    }
  }

  void join(std::size_t who, const LockName& name) {
    const Nonce nonce{next_nonce_++};
    tickets_.push_back({who, static_cast<std::uint64_t>(nonce)});
    const auto joined =
        peers_[who]->ask<Standing>([&](auto& s, auto a) { s.join(name, nonce, std::move(a)); });
    if (joined && *joined) judge_and_watch(*peers_[who], nonce, **joined, name);
  }

  void leave(std::size_t who, const LockName& name) {
    const auto mine = std::find_if(tickets_.begin(), tickets_.end(),
                                   [&](const OurTicket& t) { return t.peer == who; });
    if (mine == tickets_.end()) return;
    const Nonce nonce{mine->nonce};
    tickets_.erase(mine);
    peers_[who]->ask<WithdrawResult>(
        [&](auto& s, auto a) { s.withdraw(name, nonce, std::move(a)); });
  }

  bool judge_and_watch(Peer& peer, Nonce nonce, const Standing& standing, const LockName& name) {
    const auto judged = judge(standing.view, nonce);
    if (judged.verdict == Verdict::waiting) {
      // The engine also looks again after every watch event. check() does that for every ticket.
      loop_.step([&] {
        peer.session().watch(
            name, *judged.predecessor, {nonce, false},
            [this, nonce](const WatchEvent& event) { hints_[nonce] = event.hint; });
      });
    }
    if (judged.verdict != Verdict::holder) return false;
    const auto id = etcd::parse_entry_id(standing.view.tickets.back().id);
    FUZZ_REQUIRE(id.has_value());
    const auto& shown = peer.wire.readings();
    FUZZ_REQUIRE(std::any_of(shown.begin(), shown.end(), [&](const auto& reading) {
      return proves_holder(reading, kPrefix + id->suffix, standing.token);
    }));
    return true;
  }

  void check() {
    const auto name = parse_lock_name("job").value();
    std::size_t holders = 0;
    for (const auto& ticket : tickets_) {
      Peer& peer = *peers_[ticket.peer];
      if (peer.over()) continue;
      const Nonce nonce{ticket.nonce};
      const auto hint = std::exchange(hints_[nonce], {});  // the engine, too, uses a hint once
      const auto look =
          peer.ask<Standing>([&](auto& s, auto a) { s.look(name, nonce, hint, std::move(a)); });
      if (look && *look) holders += judge_and_watch(peer, nonce, **look, name) ? 1 : 0;
    }
    FUZZ_REQUIRE(holders <= 1 || lied());
  }

  Input& in_;
  ManualLoop loop_;
  FakeEtcd etcd_;
  std::map<Nonce, LookHint> hints_;  // from the last event of the watch on the predecessor
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<OurTicket> tickets_;
  std::uint64_t next_nonce_ = 1;
};

}  // namespace
}  // namespace baton::fuzz

FUZZ_TARGET(etcd_answers) {
  // A failed check in the fakes is a failure of the target, too.
  GTEST_FLAG_SET(break_on_failure, true);
  baton::fuzz::Input in(input);
  baton::fuzz::check_rule(in);
  baton::fuzz::World(in).run();
}
