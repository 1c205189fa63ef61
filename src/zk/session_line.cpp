// The line under a ZkSession: connecting, the lease, further sessions that only watch.
#include "zk/session.h"

#include <algorithm>
#include <utility>

namespace baton::internal {

using std::chrono::milliseconds;

namespace {
constexpr milliseconds kReconnect{2'000};
constexpr milliseconds kRetry{200};
constexpr milliseconds kApart{50};
// So long no server has taken us back, or this many timeouts: the session is given up for a new
// one. Servers that were wiped, or set back, refuse whoever has seen more than they have, and never
// say that its session is over; and the C client does not forget what it has seen. Long enough for
// restarts and elections: who waits keeps his place through those.
constexpr milliseconds kForlorn{60'000};
constexpr int kForlornTimeouts = 6;
}  // namespace

// A session without nodes, for watches beyond the budget of one.
class ZkSession::SideLine final : public ZkLineListener {
 public:
  explicit SideLine(ZkSession& session) : session_(session) {
    line_ = session.parts_.make_line(*this);
    outbox_.attach(line_.get());
  }
  ZkOutbox& outbox() noexcept { return outbox_; }
  void set_lane(std::size_t lane) noexcept { lane_ = lane; }

  void line_connected(const ZkConnection&) override { outbox_.connected(); }
  void line_disconnected() override {
    outbox_.disconnected();
    if (!session_.ended_ && !session_.closing_) session_.watches_.lane_cut(lane_);
  }
  void line_ended(ZkStatus, const std::string&) override {
    session_.side_line_ended_ = session_.parts_.loop->now();
    outbox_.disconnected();
    line_.reset();
    ended_ = true;
    session_.parts_.loop->defer([session = &session_, alive = session_.alive_] {
      if (*alive && !session->ended_)
        std::erase_if(session->side_lines_, [](const auto& l) { return l->ended_; });
    });
    if (!session_.ended_) session_.watches_.lane_ended(lane_);
  }
  void line_news(ZkNews news, const std::string& path) override {
    if (!session_.ended_) session_.watches_.news(lane_, news, path);
  }

 private:
  ZkSession& session_;
  std::size_t lane_ = 0;
  bool ended_ = false;
  std::unique_ptr<ZkLine> line_;
  ZkOutbox outbox_;
};

ZkSession::ZkSession(ZkSessionParts parts, SessionListener& listener, Answer<Done> opened)
    : parts_(std::move(parts)),
      apart_(parts_.loop->now()),
      listener_(listener),
      opened_(std::move(opened)),
      lease_(std::make_shared<LeaseView>(Time{}, Time{})),
      permanent_parents_(parts_.permanent_parents),
      lister_(outbox_),
      watches_(*parts_.loop, parts_.watch_budget, [this] { return more_room(); }) {
  watches_.add_lane(outbox_);
  line_ = parts_.make_line(*this);
  outbox_.attach(line_.get());
  watch_apart();
}

ZkSession::~ZkSession() {
  *alive_ = false;
  lease_->end();
  parts_.loop->cancel(closing_timer_);
  parts_.loop->cancel(apart_timer_);
  for (const TimerId retry : retries_) parts_.loop->cancel(retry);
  heartbeat_.reset();
  line_.reset();
}

// ---- the line

void ZkSession::line_connected(const ZkConnection& connection) {
  if (closing_) {
    if (closed_) say_goodbye();
    return;
  }
  const bool first = heartbeat_ == nullptr;
  if (!first && connection.session != connection_.session) {
    over(Errc::session_expired, "the server gave us another session");
    return;
  }
  if (!first && connection.timeout != connection_.timeout) {
    // Deadlines were reckoned with the old one.
    over(Errc::session_expired, "the server changed the session timeout from " +
                                    std::to_string(connection_.timeout.count()) + " to " +
                                    std::to_string(connection.timeout.count()) + " ms");
    return;
  }
  connection_ = connection;
  connected_ = true;
  apart_candidate_.reset();
  parts_.loop->cancel(apart_timer_);
  if (first) {
    heartbeat_ = std::make_unique<ZkHeartbeat>(*parts_.loop, *line_, connection.timeout, apart_,
                                               [this] { renewed(); });
  }
  // The heartbeat goes first: what follows may be granted under it.
  heartbeat_->connected(apart_);
  outbox_.connected();
  if (!first && !opened_) listener_.session_resumed();
}

// The later the last moment without a connection, the more the next one proves.
void ZkSession::watch_apart() {
  parts_.loop->cancel(apart_timer_);
  if (line_ == nullptr || connected_ || closing_) return;
  const Time now = parts_.loop->now();
  const auto longest = std::max(kForlorn, connection_.timeout * kForlornTimeouts);
  if (heartbeat_ != nullptr && now - disconnected_at_ > longest) {
    over(Errc::session_expired, "no server has taken the session back for " +
                                    std::to_string(longest.count() / 1000) + " s");
    return;
  }
  // Twice in a row: then the older one is true. The C client says "connecting" for a moment longer
  // than it should.
  if (line_->surely_apart()) {
    if (apart_candidate_) apart_ = *apart_candidate_;
    apart_candidate_ = now;
  } else {
    apart_candidate_.reset();
  }
  apart_timer_ = parts_.loop->at(now + kApart, [this] { watch_apart(); });
}

void ZkSession::line_disconnected() {
  connected_ = false;
  disconnected_at_ = parts_.loop->now();
  watch_apart();
  outbox_.disconnected();
  if (heartbeat_ != nullptr) heartbeat_->disconnected();
}

void ZkSession::line_ended(ZkStatus why, const std::string& detail) {
  switch (why) {
    case ZkStatus::auth_failed:
      over(Errc::permission_denied, "the server refused our credentials");
      return;
    case ZkStatus::expired:
      over(Errc::session_expired, "the server ended the session");
      return;
    default:
      over(Errc::connection_failed,
           "cannot begin to connect; are the servers' names right? (" + detail + ")");
      return;
  }
}

void ZkSession::line_news(ZkNews news, const std::string& path) { watches_.news(0, news, path); }

void ZkSession::over(Errc reason, const std::string& detail) {
  if (std::exchange(ended_, true)) return;
  connected_ = false;
  lease_->end();
  outbox_.disconnected();
  for (const auto& errand : std::exchange(errands_, {})) errand->finish();
  watches_.stop_looking();
  heartbeat_.reset();
  line_.reset();  // no answer comes any more
  parts_.loop->cancel(apart_timer_);
  if (closing_) {
    if (closed_) say_goodbye();
  } else if (opened_) {
    // Worth another try, unless we are not welcome.
    const bool refused = reason == Errc::permission_denied;
    std::exchange(opened_, nullptr)(Error(refused ? reason : Errc::connection_failed, detail));
  } else {
    listener_.session_ended(reason, detail);
  }
}

// ---- the lease

void ZkSession::renewed() {
  const Time now = parts_.loop->now();
  const Time deadline = heartbeat_->deadline();
  if (now < lease_->deadline()) {
    lease_->extend(heartbeat_->suspect_at(), deadline);
  } else if (deadline > now && heartbeat_->write_was_last()) {
    // It ran out, or nothing was held: a new one begins. What was held under the old is lost. Only
    // with a write: a sync is answered even for a session that is about to end.
    lease_->end();
    lease_ = std::make_shared<LeaseView>(heartbeat_->suspect_at(), deadline);
  } else {
    lease_->extend(heartbeat_->suspect_at(), lease_->deadline());  // contact, and no more
  }
  if (!opened_) return;
  heartbeat_->set_active(!places_.empty());
  std::exchange(opened_, nullptr)(Done{});
}

SessionInfo ZkSession::info() const {
  SessionInfo info;
  info.backend = "zk";
  info.endpoint = connection_.endpoint;
  info.timeout = connection_.timeout;
  info.state = ended_       ? SessionState::closed
               : connected_ ? SessionState::connected
                            : SessionState::suspect;
  return info;
}

milliseconds ZkSession::backstop() const {
  return std::clamp(connection_.timeout / 2, milliseconds(1'000), milliseconds(30'000));
}

void ZkSession::again(Task task) {
  if (!outbox_.open()) {
    task();  // waits for a connection
    return;
  }
  // The server has answered, and wants to be asked less.
  auto id = std::make_shared<TimerId>(TimerId::none);
  *id = parts_.loop->at(parts_.loop->now() + kRetry, [this, id, task = std::move(task)]() mutable {
    retries_.erase(*id);
    task();
  });
  retries_.insert(*id);
}

void ZkSession::close(Answer<Done> answer) {
  closing_ = true;
  watches_.stop_looking();
  parts_.loop->cancel(apart_timer_);
  heartbeat_.reset();
  closed_ = std::move(answer);
  if (connected_ || line_ == nullptr) {
    say_goodbye();
    return;
  }
  // A goodbye that the server hears frees our entries at once: worth waiting for a connection.
  closing_timer_ = parts_.loop->at(parts_.loop->now() + kReconnect, [this] { say_goodbye(); });
}

void ZkSession::say_goodbye() {
  parts_.loop->cancel(closing_timer_);
  outbox_.disconnected();  // nothing is sent after this
  auto answer = std::exchange(closed_, nullptr);
  if (line_ == nullptr) {
    parts_.loop->defer([answer = std::move(answer)]() mutable { answer(Done{}); });
  } else {
    line_->close([answer = std::move(answer)]() mutable { answer(Done{}); });
  }
}

ZkOutbox* ZkSession::more_room() {
  constexpr std::size_t kMost = 8;  // servers allow 60 connections per address
  if (ended_ || closing_ || side_lines_.size() >= kMost) return nullptr;
  // One that ended at once would be opened again at once.
  if (side_line_ended_ != Time{} && parts_.loop->now() < side_line_ended_ + backstop()) {
    return nullptr;
  }
  parts_.log(LogLevel::info, "more watches than one session may have: opening a further one");
  side_lines_.push_back(std::make_unique<SideLine>(*this));
  side_lines_.back()->set_lane(watches_.lanes());
  return &side_lines_.back()->outbox();
}

}  // namespace baton::internal
