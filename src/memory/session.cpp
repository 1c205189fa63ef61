#include "memory/session.h"

#include "common/seam/lease.h"
#include "common/base/mutant.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

namespace baton::internal {

using std::chrono::milliseconds;

// The store's line to the session; cut when the session goes.
class MemorySession::Peer final : public MemoryPeer {
 public:
  explicit Peer(std::shared_ptr<Wire> wire) : wire_(std::move(wire)) {}

  void watch_fired(WatchId id) override {
    send([id](MemorySession& s) { s.watch_fired(id); });
  }
  void session_over() override {
    send([](MemorySession& s) { s.over("the store ended the session"); });
  }
  void cut() {
    const std::lock_guard guard(mutex_);
    wire_ = nullptr;
    *session_ = nullptr;
  }
  // On the strand.
  void attach(MemorySession* session) { *session_ = session; }

 private:
  template <class F>
  void send(F f) {
    const std::lock_guard guard(mutex_);
    if (wire_ == nullptr) return;
    wire_->news([session = session_, f] {
      if (*session != nullptr) f(**session);
    });
  }
  std::mutex mutex_;  // the store calls from any thread; cut() comes from the strand
  std::shared_ptr<Wire> wire_;
  // Read and written on the strand alone.
  std::shared_ptr<MemorySession*> session_ = std::make_shared<MemorySession*>(nullptr);
};

void MemorySession::open(const MemorySessionParts& parts, SessionListener& listener,
                         Answer<std::unique_ptr<Session>> answer) {
  // An open whose answer is lost leaves a session at the store; its line must not lead to us.
  struct Unattached {
    ~Unattached() {
      if (peer) peer->cut();
    }
    std::shared_ptr<Peer> peer;
  };
  auto peer = std::make_shared<Peer>(parts.wire);
  auto unattached = std::make_shared<Unattached>();
  unattached->peer = peer;
  const Time sent = parts.loop->now();
  auto shared = std::make_shared<Answer<std::unique_ptr<Session>>>(std::move(answer));
  auto timer = std::make_shared<TimerId>(TimerId::none);
  Loop* const loop = parts.loop;
  if (parts.wire->lossy()) {
    *timer = loop->at(sent + parts.timeout / 3, [shared] {
      if (*shared) {
        std::exchange(*shared,
                      nullptr)(Error(Errc::connection_failed, "the store did not answer in time"));
      }
    });
  }
  const auto wire = parts.wire;
  wire->request(Traffic::open, [parts, &listener, peer, unattached, sent, shared, timer, wire,
                                loop] {
    const auto id =
        parts.store->open(parts.client, parts.label, parts.timeout, peer, parts.store_clock->now());
    wire->answer(Traffic::open, [parts, &listener, peer, unattached, sent, shared, timer, loop,
                                 id] {
      loop->cancel(*timer);
      if (!*shared) return;  // too late: the session at the store dies of neglect
      std::unique_ptr<MemorySession> session(new MemorySession(parts, listener, id, peer, sent));
      peer->attach(session.get());
      unattached->peer = nullptr;
      std::exchange(*shared, nullptr)(std::unique_ptr<Session>(std::move(session)));
    });
  });
}

MemorySession::MemorySession(MemorySessionParts parts, SessionListener& listener,
                             MemorySessionId id, std::shared_ptr<Peer> peer, Time sent)
    : parts_(std::move(parts)),
      listener_(listener),
      id_(id),
      peer_(std::move(peer)),
      lease_(std::make_shared<LeaseView>()),
      alive_(std::make_shared<bool>(true)) {
  if (!parts_.store->leases()) return;
  last_sent_ = sent;
  lease_->extend(sent + parts_.timeout / 2, lease_deadline(sent, parts_.timeout));
  beat_timer_ = parts_.loop->at(sent + parts_.timeout / 3, [this] { beat(); });
}

MemorySession::~MemorySession() {
  *alive_ = false;
  peer_->cut();
  drop_questions();
  parts_.loop->cancel(beat_timer_);
  // Without leases nobody else would ever remove what is left.
  if (!parts_.store->leases()) parts_.store->close(id_);
}

// ---- the lease

void MemorySession::beat() {
  const Time sent = parts_.loop->now();
  // One at a time matters to ZooKeeper; here an answer that is missing is asked for again.
  beat_timer_ = parts_.loop->at(sent + parts_.timeout / 6, [this] { beat(); });
  parts_.wire->request(Traffic::heartbeat, [this, alive = alive_, parts = parts_, id = id_, sent] {
    const bool there = parts.store->heartbeat(id, parts.store_clock->now());
    parts.wire->answer(Traffic::heartbeat, [this, alive, sent, there] {
      if (*alive) beat_answered(sent, there);
    });
  });
}

void MemorySession::beat_answered(Time sent, bool there) {
  if (!there) {
    over("the store does not know the session any more");
    return;
  }
  if (sent <= last_sent_) return;  // late or doubled
  const Time now = parts_.loop->now();
  const bool was_suspect = now >= lease_->suspect_at();
  last_sent_ = sent;
  renew(sent, now);
  parts_.loop->cancel(beat_timer_);
  beat_timer_ = parts_.loop->at(std::max(now, sent + parts_.timeout / 3), [this] { beat(); });
  if (was_suspect) listener_.session_resumed();  // news may have been lost meanwhile
}

void MemorySession::renew(Time sent, Time now) {
  if (now >= lease_->deadline() && !mutant(Mutant::revive_lost)) {
    // It ran out: what was held under it is lost and stays so. A new one begins.
    lease_->end();
    lease_ = std::make_shared<LeaseView>();
  }
  const Time from = mutant(Mutant::deadline_from_answer) ? now : sent;
  lease_->extend(from + parts_.timeout / 2, lease_deadline(from, parts_.timeout));
}

void MemorySession::over(const std::string& detail) {
  if (std::exchange(ended_, true)) return;
  *alive_ = false;
  alive_ = std::make_shared<bool>(false);
  lease_->end();
  drop_questions();
  parts_.loop->cancel(beat_timer_);
  listener_.session_ended(Errc::session_expired, detail);
}

void MemorySession::drop_questions() {
  for (const auto& [question, asked] : questions_) parts_.loop->cancel(asked.timer);
  questions_.clear();
}

// ---- questions

namespace {
Result<Standing> without_sign(Result<Standing> standing, bool remote) {
  if (remote && standing) standing->sign = nullptr;
  return standing;
}
}  // namespace

// Questions under way belong to the session: what is left of them goes with it, so that whoever
// waits is not kept by a timer.
template <class T, class F>
void MemorySession::ask(Traffic kind, F at_store, Answer<T> answer) {
  const std::uint64_t question = next_question_++;
  Question& asked = questions_[question];
  asked.answer = std::make_shared<Answer<T>>(std::move(answer));
  if (parts_.wire->lossy()) {
    asked.timer = parts_.loop->at(parts_.loop->now() + parts_.timeout / 6, [this, question] {
      finish<T>(question, Error(Errc::connection_failed, "the store did not answer in time"));
    });
  }
  parts_.wire->request(kind, [this, kind, alive = alive_, wire = parts_.wire, store = parts_.store,
                              id = id_, at_store = std::move(at_store), question] {
    auto result = std::make_shared<Result<T>>(at_store(*store, id));
    wire->answer(kind, [this, alive, question, result] {
      if (!*alive) return;
      if (!*result && result->error().errc() == Errc::session_expired) {
        over(result->error().what());
      } else {
        finish<T>(question, std::move(*result));
      }
    });
  });
}

// Answered once: what comes later, or twice, finds no question.
template <class T>
void MemorySession::finish(std::uint64_t question, Result<T> result) {
  auto asked = questions_.extract(question);
  if (asked.empty()) return;
  parts_.loop->cancel(asked.mapped().timer);
  (*std::static_pointer_cast<Answer<T>>(asked.mapped().answer))(std::move(result));
}

void MemorySession::join(const LockName& name, Nonce nonce, Answer<Standing> answer) {
  ask<Standing>(
      Traffic::join,
      [name, nonce, remote = parts_.remote](MemoryStore& store, MemorySessionId id) {
        return without_sign(store.join(id, name, nonce), remote);
      },
      std::move(answer));
}

void MemorySession::look(const LockName& name, Nonce nonce, Answer<Standing> answer) {
  ask<Standing>(
      Traffic::look,
      [name, nonce, remote = parts_.remote](MemoryStore& store, MemorySessionId id) {
        return without_sign(store.look(id, name, nonce), remote);
      },
      std::move(answer));
}

void MemorySession::peek(const LockName& name, Answer<bool> busy) {
  ask<bool>(
      Traffic::peek,
      [name](MemoryStore& store, MemorySessionId id) { return store.peek(id, name); },
      std::move(busy));
}

void MemorySession::withdraw(const LockName& name, Nonce nonce, Answer<Done> answer) {
  ask<Done>(
      Traffic::withdraw,
      [name, nonce](MemoryStore& store, MemorySessionId id) {
        return store.withdraw(id, name, nonce);
      },
      std::move(answer));
}

void MemorySession::verify(const LockName& name, Nonce nonce, Answer<bool> answer) {
  ask<bool>(
      Traffic::verify,
      [name, nonce](MemoryStore& store, MemorySessionId id) {
        return store.verify(id, name, nonce);
      },
      std::move(answer));
}

void MemorySession::inspect(const LockName& name, Answer<LockSnapshot> answer) {
  ask<LockSnapshot>(
      Traffic::operators,
      [name](MemoryStore& store, MemorySessionId) {
        return Result<LockSnapshot>(store.inspect(name));
      },
      std::move(answer));
}

void MemorySession::list(std::string_view prefix, Answer<std::vector<std::string>> answer) {
  ask<std::vector<std::string>>(
      Traffic::operators,
      [begins = std::string(prefix)](MemoryStore& store, MemorySessionId) {
        return Result<std::vector<std::string>>(store.list(begins));
      },
      std::move(answer));
}

void MemorySession::evict(const LockName& name, std::string_view entry_id, Answer<bool> answer) {
  ask<bool>(
      Traffic::operators,
      [name, entry = std::string(entry_id)](MemoryStore& store, MemorySessionId) {
        return Result<bool>(store.evict(name, entry));
      },
      std::move(answer));
}

// Not over the wire: a part of opening, which has just been there and back.
void MemorySession::settle_token_base(std::uint64_t wanted, Answer<std::uint64_t> answer) {
  parts_.loop->defer([alive = alive_, answer = std::move(answer),
                      base = parts_.store->settle_token_base(wanted)]() mutable {
    if (*alive) answer(std::move(base));
  });
}

void MemorySession::close(Answer<Done> answer) {
  parts_.loop->cancel(beat_timer_);
  ask<Done>(
      Traffic::operators,
      [](MemoryStore& store, MemorySessionId id) {
        store.close(id);
        return Result<Done>(Done{});
      },
      std::move(answer));
}

// ---- watches

WatchId MemorySession::watch(const LockName& name, const Ticket& ticket, const WatchFor&,
                             WatchHandler handler) {
  const WatchId id{next_watch_++};
  watches_.emplace(id, std::move(handler));
  parts_.wire->request(Traffic::watch,
                       [store = parts_.store, session = id_, name, rank = ticket.rank, id] {
                         store->watch(session, name, rank, id);
                       });
  return id;
}

void MemorySession::unwatch(WatchId id) {
  if (watches_.erase(id) == 0) return;
  parts_.wire->request(Traffic::watch,
                       [store = parts_.store, session = id_, id] { store->unwatch(session, id); });
}

void MemorySession::watch_fired(WatchId id) {
  auto watch = watches_.extract(id);
  // Always "look": this store gives no order between events of two tickets.
  if (!watch.empty()) watch.mapped()(WatchEvent::look);
}

SessionInfo MemorySession::info() const {
  SessionInfo info;
  info.backend = "memory";
  info.endpoint = parts_.endpoint;
  info.timeout = parts_.store->leases() ? parts_.timeout : milliseconds::max();
  info.state = SessionState::connected;
  return info;
}

milliseconds MemorySession::backstop() const {
  using std::chrono::seconds;
  if (!parts_.store->leases()) return seconds(30);  // nothing gets lost inside one process
  return std::clamp(parts_.timeout / 2, milliseconds(seconds(1)), milliseconds(seconds(30)));
}

}  // namespace baton::internal
