// Fuzzes what other programs may leave in a lock's directory on ZooKeeper: names of children and
// data of nodes. The queue rule must agree with a second, simpler implementation, and two real
// sessions join and leave among these nodes.
#include <baton/error.h>

#include "common/recipe/queue_rule.h"
#include "fake_zk_client.h"
#include "fuzz.h"
#include "zk/path.h"
#include "zk/status.h"

#include <algorithm>
#include <map>
#include <set>

namespace baton::zk {
namespace {

using fuzz::Input;

// The number at the end of `child`, or nothing. The name must end with the mark and one to ten
// digits, or with the mark, a minus sign and nine or ten digits.
std::optional<std::int64_t> number_behind(const std::string& child, const std::string& mark) {
  std::size_t digits = child.size();
  while (digits > 0 && child[digits - 1] >= '0' && child[digits - 1] <= '9') --digits;
  const std::size_t count = child.size() - digits;
  if (count == 0 || count > 10) return std::nullopt;
  const auto number = std::stoll(child.substr(digits));
  const std::string head = child.substr(0, digits);
  if (head.ends_with(mark)) return number;
  if (head.ends_with(mark + "-") && count >= 9) {
    return (std::int64_t{1} << 32) - std::min<std::int64_t>(number, 2147483648);
  }
  return std::nullopt;
}

std::optional<std::int64_t> expected_sequence(const std::string& child) {
  if (const auto ours = number_behind(child, "-lock-")) return ours;
  return number_behind(child, "__lock__");
}

void check_rule(const std::vector<std::string>& children) {
  const auto queue = make_queue(children);
  FUZZ_REQUIRE(queue.entries.size() + queue.others == children.size());
  std::size_t first = 0;
  for (const auto& child : children) {
    const auto sequence = sequence_of(child);
    FUZZ_REQUIRE(sequence == expected_sequence(child), child);
    if (!sequence) continue;
    FUZZ_REQUIRE(*sequence >= 0);
    const auto position = position_of(queue, *sequence, child);
    FUZZ_REQUIRE(position.has_value(), child);
    const QueueEntry* nearest = nullptr;
    std::size_t ahead = 0;
    for (const auto& entry : queue.entries) {
      if (entry.name == child || entry.sequence > *sequence) continue;
      ++ahead;
      if (nearest == nullptr || entry.sequence >= nearest->sequence) nearest = &entry;
    }
    FUZZ_REQUIRE(position->ahead == ahead);
    FUZZ_REQUIRE((position->predecessor == nullptr) == (ahead == 0));
    if (nearest != nullptr) {
      FUZZ_REQUIRE(position->predecessor->sequence == nearest->sequence);
      FUZZ_REQUIRE(position->predecessor->name != child);
      // Every entry ahead has a smaller rank, also an entry with the same number.
      FUZZ_REQUIRE(rank_of(nearest->sequence, false) < rank_of(*sequence, true));
    }
    first += ahead == 0 ? 1 : 0;
    FUZZ_REQUIRE(!position_of(queue, *sequence, child + "x"));
  }
  FUZZ_REQUIRE(first <= 1);  // at most one holder, with any list of children
}

void check_data(const std::string& data) {
  const auto label = decode_label(data);
  FUZZ_REQUIRE(label.has_value() == data.starts_with("baton/1 "));
  FUZZ_REQUIRE(!label || label->size() <= 256);
  FUZZ_REQUIRE(decode_label(encode_label(data)) == data.substr(0, 256));
}

void check_status(Input& in) {
  const int code = static_cast<int>(in.edge());
  const auto status = status_of(code);
  FUZZ_REQUIRE((status == Status::ok) == (code == 0));
  FUZZ_REQUIRE(zk::call_error(status, code, "x").what()[0] != '\0');
}

// The name of a child as our clients, other programs or attackers choose it.
std::string pick_child(Input& in) {
  const std::uint8_t what = in.byte();
  std::string number = std::to_string(static_cast<std::int64_t>(in.edge()));
  if ((what & 0x80) != 0)
    number.insert(number[0] == '-' ? 1 : 0, 10 - std::min<std::size_t>(10, number.size()), '0');
  switch (what & 7) {
    case 0:
      return in.text();
    case 1:
      return "_c_5f1a-lock-" + number;
    case 2:
      return "0123abcd__lock__" + number;
    case 3:
      // Looks like a node of our client.
      return "AAAAAAAA" + std::to_string(in.byte() % 4) + "-lock-" + number;
    case 4:
      return in.text() + "-lock-" + number;
    case 5:
      return in.text() + "__lock__" + number;
    default:
      return "BBBBBBBBx-lock-" + number;
  }
}

bool can_be_a_child(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

struct OurTicket {
  std::size_t client;
  std::uint64_t nonce;
};

class World {
 public:
  explicit World(Input& in) : in_(in), zk_(loop_) {}

  void run() {
    std::vector<std::string> children;
    for (int count = in_.byte() % 12; count > 0; --count) {
      const auto child = pick_child(in_);
      const auto data = in_.text();
      check_data(data);
      if (!can_be_a_child(child) || zk_.find(kDirectory + "/" + child) != nullptr) continue;
      children.push_back(child);
      zk_.put(kDirectory + "/" + child, FakeNode::Kind::entry, data,
              static_cast<std::int64_t>(0x5000 + in_.byte() % 2));
      if (in_.flag())
        zk_.set_ctime(kDirectory + "/" + child, static_cast<std::int64_t>(in_.edge()));
    }
    check_rule(children);
    check_status(in_);
    if (in_.flag() && zk_.find(kDirectory) != nullptr) {
      zk_.set_counter(kDirectory, static_cast<std::int32_t>(in_.edge() & 0x7fffffff));
    }
    for (const char* id : {"AAAAAAAA", "BBBBBBBB"}) {
      clients_.push_back(std::make_unique<FakeZkClient>(zk_, FakeZkClient::Setup{.client_id = id}));
    }
    for (int steps = 0; steps < 24 && !in_.empty(); ++steps) {
      step();
      check();
    }
    for (auto& client : clients_) client->destroy();
  }

 private:
  inline static const std::string kDirectory = "/app/job";

  void step() {
    const std::uint8_t what = in_.byte();
    const std::size_t who = (what >> 4) & 1;
    auto& client = *clients_[who];
    switch (what & 15) {
      case 0:  // the connection will break: a request or an answer is lost
        client.plan({{in_.byte() % 4}, in_.flag(), false, false});
        return;
      case 1: {  // an operator removes a node
        const auto all = zk_.children(kDirectory);
        if (!all.empty()) zk_.remove(kDirectory + "/" + all[in_.byte() % all.size()]);
        client.move_until_idle();
        return;
      }
      case 2:
        zk_.end(0x5000 + in_.byte() % 2);  // another client's session ends, and its nodes go
        client.move_until_idle();
        return;
      case 3:
      case 4: {
        const auto mine = std::find_if(tickets_.begin(), tickets_.end(),
                                       [&](const OurTicket& t) { return t.client == who; });
        if (mine == tickets_.end()) return;
        const auto nonce = mine->nonce;
        tickets_.erase(mine);
        client.persist([&] { return client.withdraw(nonce); });
        // No node of the withdrawn ticket is left.
        for (const auto& path : client.entries()) {
          FUZZ_REQUIRE(path.find("/" + zk::entry_prefix(client.id(nonce))) == path.npos, path);
        }
        return;
      }
      case 5: {
        const auto entry = in_.flag() ? in_.text() : pick_child(in_);
        const auto before = zk_.children(kDirectory);
        const bool calm = client.all_cut();
        const auto evicted = client.persist([&] { return client.evict(entry); });
        const auto after = zk_.children(kDirectory);
        // Evict removes exactly the named entry, or nothing.
        const bool was = std::count(before.begin(), before.end(), entry) != 0 && sequence_of(entry);
        FUZZ_REQUIRE(after.size() == before.size() - (was ? 1 : 0), entry);
        // After a lost answer, evict may report that it removed an entry that another client
        // removed.
        FUZZ_REQUIRE(evicted->ok() && (evicted->value() == was || !calm), entry);
        return;
      }
      case 6:
        check_listing(client);
        return;
      default:
        if (tickets_.size() < 8) join(who);
        return;
    }
  }

  void join(std::size_t who) {
    auto& client = *clients_[who];
    const std::uint64_t nonce = next_nonce_++;
    const auto joined = client.persist([&] { return client.join(nonce); });
    // The ticket is kept even if join failed, because its node may exist.
    tickets_.push_back({who, nonce});
    FUZZ_REQUIRE(joined->got.has_value());
  }

  void check() {
    std::size_t holders = 0;
    for (const auto& ticket : tickets_) {
      auto& client = *clients_[ticket.client];
      const auto look = client.persist([&] { return client.look(ticket.nonce); });
      if (!look->ok()) continue;
      const auto judged = judge(look->value().view, Nonce{ticket.nonce});
      if (judged.verdict != Verdict::holder) continue;
      ++holders;
      check_holder(client, ticket.nonce, look->value().token);
    }
    FUZZ_REQUIRE(holders <= 1);
  }

  // The holder's node must exist, belong to the holder's session and have the token as its czxid.
  // No other node may have the same number or a smaller one.
  void check_holder(FakeZkClient& client, std::uint64_t nonce, std::uint64_t token) {
    const auto prefix = zk::entry_prefix(client.id(nonce));
    std::optional<std::int64_t> mine;
    for (const auto& child : zk_.children(kDirectory)) {
      const auto* node = zk_.find(kDirectory + "/" + child);
      if (!child.starts_with(prefix) || node->owner != client.wire().session()) continue;
      FUZZ_REQUIRE(node->created_at == token);
      mine = expected_sequence(child);
    }
    FUZZ_REQUIRE(mine.has_value());
    for (const auto& child : zk_.children(kDirectory)) {
      const auto* node = zk_.find(kDirectory + "/" + child);
      const auto other = expected_sequence(child);
      if (!other || node->created_at == token) continue;
      FUZZ_REQUIRE(*other > *mine, child);
    }
  }

  void check_listing(FakeZkClient& client) {
    const auto snapshot = client.persist([&] { return client.inspect(); });
    FUZZ_REQUIRE(snapshot->ok());
    std::vector<std::string> shown;
    for (const auto& entry : snapshot->value().entries) {
      const auto* node = zk_.find(kDirectory + "/" + entry.id);
      FUZZ_REQUIRE(node != nullptr && entry.token == node->created_at);
      FUZZ_REQUIRE(entry.label == decode_label(node->data).value_or("unknown"));
      if (!shown.empty()) {
        FUZZ_REQUIRE(*expected_sequence(shown.back()) <= *expected_sequence(entry.id));
      }
      shown.push_back(entry.id);
    }
    const auto names = client.persist([&] { return client.list(); });
    FUZZ_REQUIRE(names->ok());
    const auto& found = names->value();
    FUZZ_REQUIRE((std::count(found.begin(), found.end(), "job") == 1) == !shown.empty());
  }

  Input& in_;
  ManualLoop loop_;
  FakeZk zk_;
  std::vector<std::unique_ptr<FakeZkClient>> clients_;
  std::vector<OurTicket> tickets_;
  std::uint64_t next_nonce_ = 1;
};

}  // namespace
}  // namespace baton::zk

FUZZ_TARGET(zk_nodes) {
  // A failed check in the fakes is a failure of the target, too.
  GTEST_FLAG_SET(break_on_failure, true);
  baton::fuzz::Input in(input);
  baton::zk::World(in).run();
}
