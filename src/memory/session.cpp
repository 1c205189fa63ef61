#include "memory/session.h"

#include "common/seam/lease.h"
#include "common/base/mutant.h"
#include "common/base/mutex.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace baton::memory {

using std::chrono::milliseconds;

// Lets the store send news to the session. cut() ends that when the session is destroyed.
class Session::Peer final : public SessionPeer {
 public:
  explicit Peer(std::shared_ptr<Transport> transport) : transport_(std::move(transport)) {}

  void watch_fired(WatchId id) override {
    send([id](Session& s) { s.watch_fired(id); });
  }
  void session_over() override {
    send([](Session& s) { s.over("the store ended the session"); });
  }
  void cut() {
    const MutexLock guard(mutex_);
    transport_ = nullptr;
    *session_ = nullptr;
  }
  // On the strand.
  void attach(Session* session) { *session_ = session; }

 private:
  template <class F>
  void send(F f) {
    const MutexLock guard(mutex_);
    if (transport_ == nullptr) return;
    transport_->news([session = session_, f] {
      if (*session != nullptr) f(**session);
    });
  }
  Mutex mutex_;  // the store calls from any thread; cut() comes from the strand
  std::shared_ptr<Transport> transport_ BATON_GUARDED_BY(mutex_);
  // Read and written only on the strand.
  std::shared_ptr<Session*> session_ = std::make_shared<Session*>(nullptr);
};

void Session::open(const SessionParts& parts, SessionListener& listener,
                   Answer<std::unique_ptr<internal::Session>> answer) {
  // If the answer is lost, the store keeps a session without a client. Its news must not use our
  // transport then.
  struct Unattached {
    ~Unattached() {
      if (peer) peer->cut();
    }
    std::shared_ptr<Peer> peer;
  };
  auto peer = std::make_shared<Peer>(parts.transport);
  auto unattached = std::make_shared<Unattached>();
  unattached->peer = peer;
  const Time sent = parts.loop->now();
  auto shared = std::make_shared<Answer<std::unique_ptr<internal::Session>>>(std::move(answer));
  auto timer = std::make_shared<TimerId>(TimerId::none);
  Loop* const loop = parts.loop;
  if (parts.transport->lossy()) {
    *timer = loop->at(sent + parts.timeout / 3, [shared] {
      if (*shared) {
        std::exchange(*shared,
                      nullptr)(Error(Errc::connection_failed, "the store did not answer in time"));
      }
    });
  }
  const auto transport = parts.transport;
  transport->request(Traffic::open, [parts, &listener, peer, unattached, sent, shared, timer,
                                     transport, loop] {
    const auto id = parts.store->open(parts.label, parts.timeout, peer, parts.store_clock->now());
    transport->answer(
        Traffic::open, [parts, &listener, peer, unattached, sent, shared, timer, loop, id] {
          loop->cancel(*timer);
          if (!*shared) return;  // timed out: the session at the store expires
          std::unique_ptr<Session> session(new Session(parts, listener, id, peer, sent));
          peer->attach(session.get());
          unattached->peer = nullptr;
          std::exchange(*shared, nullptr)(std::unique_ptr<internal::Session>(std::move(session)));
        });
  });
}

Session::Session(SessionParts parts, SessionListener& listener, SessionId id,
                 std::shared_ptr<Peer> peer, Time sent)
    : parts_(std::move(parts)),
      listener_(listener),
      id_(id),
      peer_(std::move(peer)),
      lease_(std::make_shared<LeaseView>()) {
  if (!parts_.store->leases()) return;
  last_sent_ = sent;
  lease_->extend(sent + parts_.timeout / 2, lease_deadline(sent, parts_.timeout));
  beat_timer_ = parts_.loop->at(sent + parts_.timeout / 3, [this] { beat(); });
}

Session::~Session() {
  lifetime_.end();
  parts_.loop->assert_on_strand();
  peer_->cut();
  drop_questions();
  parts_.loop->cancel(beat_timer_);
  // Without leases the session never expires, so its tickets must be removed here.
  if (!parts_.store->leases()) parts_.store->close(id_);
}

// ---- the lease

void Session::beat() {
  const Time sent = parts_.loop->now();
  // The answer may be lost, so send the next heartbeat even if this one is not answered.
  beat_timer_ = parts_.loop->at(sent + parts_.timeout / 6, [this] { beat(); });
  auto answered = lifetime_.guard([this, sent](bool there) { beat_answered(sent, there); });
  // A request may reach the store after the end of the session, and more than once.
  parts_.transport->request(Traffic::heartbeat, [answered, parts = parts_, id = id_] {
    const bool there = parts.store->heartbeat(id, parts.store_clock->now());
    parts.transport->answer(Traffic::heartbeat, [answered, there]() mutable { answered(there); });
  });
}

void Session::beat_answered(Time sent, bool there) {
  if (!there) {
    over("the store does not know the session any more");
    return;
  }
  if (sent <= last_sent_) return;  // late or duplicated
  const Time now = parts_.loop->now();
  const bool was_suspect = now >= lease_->suspect_at();
  last_sent_ = sent;
  renew(sent, now);
  parts_.loop->cancel(beat_timer_);
  beat_timer_ = parts_.loop->at(std::max(now, sent + parts_.timeout / 3), [this] { beat(); });
  if (was_suspect) listener_.session_resumed();  // news may have been lost in between
}

void Session::renew(Time sent, Time now) {
  if (now >= lease_->deadline()) {
    // The lease has expired: locks held under it are lost and stay lost. Start a new lease.
    lease_->end();
    lease_ = std::make_shared<LeaseView>();
  }
  const Time from = mutant(Mutant::deadline_from_answer) ? now : sent;
  lease_->extend(from + parts_.timeout / 2, lease_deadline(from, parts_.timeout));
}

void Session::over(const std::string& detail) {
  parts_.loop->assert_on_strand();
  if (std::exchange(ended_, true)) return;
  lifetime_.end();
  lease_->end();
  drop_questions();
  parts_.loop->cancel(beat_timer_);
  listener_.session_ended(Errc::session_expired, detail);
}

void Session::drop_questions() {
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

// The session owns the questions that are not answered yet and destroys them when it ends. A caller
// that waits for an answer learns of its destruction. If a timer kept the answer, the caller would
// wait for that timer, on virtual time perhaps without end.
template <class T, class F>
void Session::ask(Traffic kind, F at_store, Answer<T> answer) {
  parts_.loop->assert_on_strand();
  const std::uint64_t question = next_question_++;
  Question& asked = questions_[question];
  asked.answer = std::make_shared<Answer<T>>(std::move(answer));
  if (parts_.transport->lossy()) {
    asked.timer = parts_.loop->at(parts_.loop->now() + parts_.timeout / 6, [this, question] {
      finish<T>(question, Error(Errc::connection_failed, "the store did not answer in time"));
    });
  }
  auto answered = lifetime_.guard([this, question](Result<T> result) {
    if (!result && result.error().errc() == Errc::session_expired) {
      over(result.error().what());
    } else {
      finish<T>(question, std::move(result));
    }
  });
  // A request may reach the store after the end of the session, and more than once.
  parts_.transport->request(kind, [kind, answered, transport = parts_.transport,
                                   store = parts_.store, id = id_, at_store = std::move(at_store)] {
    auto result = std::make_shared<Result<T>>(at_store(*store, id));
    transport->answer(kind, [answered, result]() mutable { answered(std::move(*result)); });
  });
}

// Answers a question once. A late or duplicated result finds no question and is ignored.
template <class T>
void Session::finish(std::uint64_t question, Result<T> result) {
  auto asked = questions_.extract(question);
  if (asked.empty()) return;
  parts_.loop->cancel(asked.mapped().timer);
  (*std::static_pointer_cast<Answer<T>>(asked.mapped().answer))(std::move(result));
}

void Session::join(const LockName& name, Nonce nonce, Answer<Standing> answer) {
  ask<Standing>(
      Traffic::join,
      [name, nonce, remote = parts_.remote](Store& store, SessionId id) {
        return without_sign(store.join(id, name, nonce), remote);
      },
      std::move(answer));
}

void Session::look(const LockName& name, Nonce nonce, const LookHint&, Answer<Standing> answer) {
  ask<Standing>(
      Traffic::look,
      [name, nonce, remote = parts_.remote](Store& store, SessionId id) {
        return without_sign(store.look(id, name, nonce), remote);
      },
      std::move(answer));
}

void Session::peek(const LockName& name, Answer<bool> busy) {
  ask<bool>(
      Traffic::peek, [name](Store& store, SessionId id) { return store.peek(id, name); },
      std::move(busy));
}

void Session::withdraw(const LockName& name, Nonce nonce, Answer<WithdrawResult> answer) {
  ask<WithdrawResult>(
      Traffic::withdraw,
      [name, nonce](Store& store, SessionId id) { return store.withdraw(id, name, nonce); },
      std::move(answer));
}

void Session::verify(const LockName& name, Nonce nonce, Answer<bool> answer) {
  ask<bool>(
      Traffic::verify,
      [name, nonce](Store& store, SessionId id) { return store.verify(id, name, nonce); },
      std::move(answer));
}

void Session::inspect(const LockName& name, Answer<LockSnapshot> answer) {
  ask<LockSnapshot>(
      Traffic::operators,
      [name](Store& store, SessionId) { return Result<LockSnapshot>(store.inspect(name)); },
      std::move(answer));
}

void Session::list(std::string_view prefix, Answer<std::vector<std::string>> answer) {
  ask<std::vector<std::string>>(
      Traffic::operators,
      [begins = std::string(prefix)](Store& store, SessionId) {
        return Result<std::vector<std::string>>(store.list(begins));
      },
      std::move(answer));
}

void Session::evict(const LockName& name, std::string_view entry_id, Answer<bool> answer) {
  ask<bool>(
      Traffic::operators,
      [name, entry = std::string(entry_id)](Store& store, SessionId) {
        return Result<bool>(store.evict(name, entry));
      },
      std::move(answer));
}

// Does not use the transport: this is a part of opening the session, and the transport has just
// delivered the answer to that.
void Session::settle_token_base(std::uint64_t wanted, Answer<std::uint64_t> answer) {
  parts_.loop->assert_on_strand();
  parts_.loop->defer(lifetime_.guard(
      [answer = std::move(answer), base = parts_.store->settle_token_base(wanted)]() mutable {
        answer(std::move(base));
      }));
}

void Session::close(Answer<Done> answer) {
  parts_.loop->cancel(beat_timer_);
  ask<Done>(
      Traffic::operators,
      [](Store& store, SessionId id) {
        store.close(id);
        return Result<Done>(Done{});
      },
      std::move(answer));
}

// ---- watches

WatchId Session::watch(const LockName& name, const Ticket& ticket, const WatchFor&,
                       WatchHandler handler) {
  parts_.loop->assert_on_strand();
  const WatchId id{next_watch_++};
  watches_.emplace(id, std::move(handler));
  parts_.transport->request(Traffic::watch,
                            [store = parts_.store, session = id_, name, rank = ticket.rank, id] {
                              store->watch(session, name, rank, id);
                            });
  return id;
}

void Session::unwatch(WatchId id) {
  parts_.loop->assert_on_strand();
  if (watches_.erase(id) == 0) return;
  parts_.transport->request(
      Traffic::watch, [store = parts_.store, session = id_, id] { store->unwatch(session, id); });
}

void Session::watch_fired(WatchId id) {
  auto watch = watches_.extract(id);
  // Always "look", because this store does not order the events of two tickets.
  if (!watch.empty()) watch.mapped()(WatchEvent::look);
}

SessionInfo Session::info() const {
  SessionInfo info;
  info.backend = "memory";
  info.endpoint = parts_.endpoint;
  info.timeout = parts_.store->leases() ? parts_.timeout : milliseconds::max();
  info.state = SessionState::connected;
  return info;
}

milliseconds Session::backstop() const {
  using std::chrono::seconds;
  if (!parts_.store->leases()) return seconds(30);  // no event is lost inside one process
  return std::clamp(parts_.timeout / 2, milliseconds(seconds(1)), milliseconds(seconds(30)));
}

}  // namespace baton::memory
