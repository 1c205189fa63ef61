#include "etcd/link.h"

#include <algorithm>

namespace baton::etcd {

using std::chrono::milliseconds;

namespace {

constexpr std::size_t kMostUnderWay = 256;
constexpr milliseconds kLongestTry{8'000};
// link_back() makes every waiter look at its queue, so it is not called more often than this.
constexpr milliseconds kBackPause{1'000};
// Link ends a call that gRPC has not ended this long after the call's timeout. If half of the
// timeout is shorter, it waits only that long. gRPC's timers stand still when the wall clock is set
// back.
constexpr milliseconds kGrace{500};
// After this many consecutive tokens were refused as expired, the refusal is an error: the servers
// do not accept the tokens that they issue.
constexpr int kMostBadTokens = 10;
constexpr int kDeadlineExceeded = 4;
constexpr int kResourceExhausted = 8;
constexpr int kFailedPrecondition = 9;
constexpr int kUnavailable = 14;

// The server's error for a request without a token when authentication is enabled.
bool asks_who(const CallResult& verdict) {
  return verdict.message.find("user name is empty") != std::string::npos;
}

}  // namespace

Link::Link(LinkParts parts, LinkListener& listener)
    : parts_(std::move(parts)), listener_(listener) {
  parts_.cluster_state->foreign.resize(parts_.transport->endpoints(), 0);
}

// One request to one endpoint.
struct Link::Try {
  bool over = false;
  TimerId end = TimerId::none;
  Task cancel;
  std::unique_ptr<Message> nothing;
  CallAnswer answer;
};

Link::~Link() {
  lifetime_.end();
  parts_.loop->cancel(back_timer_);
  // The calls continue until they end, and so do their timers. Release the answer handlers now:
  // otherwise the timers would keep the callers alive until they fire.
  for (const auto& once : std::exchange(tries_, {})) once->answer = nullptr;
}

milliseconds Link::patience() const {
  return std::min(parts_.try_timeout * (1 << std::min(slow_, 4)), kLongestTry);
}

// ---- requests

void Link::submit(RequestPtr request) {
  if (request->how.bypass_limit) {
    send(request);
    return;
  }
  if (request->how.front) {
    queue_.push_front(std::move(request));
  } else {
    queue_.push_back(std::move(request));
  }
  pump();
}

void Link::pump() {
  while (under_way_ < kMostUnderWay && !queue_.empty()) {
    const auto next = std::move(queue_.front());
    queue_.pop_front();
    if (next->how.wanted && !next->how.wanted()) {
      fail_later(next, Status::not_sent, {kUnavailable, "cancelled before it was sent"});
    } else {
      send(next);
    }
  }
}

bool Link::lacks_token() const {
  return !parts_.user.empty() && token_.empty() && !parts_.cluster_state->auth_off;
}

void Link::send(const RequestPtr& request) {
  if (lacks_token()) {
    without_token_.push_back(request);
    authenticate();
    return;
  }
  std::size_t endpoint = request->how.endpoint.value_or(current());
  if (parts_.transport->unreachable(endpoint) && !request->how.endpoint) {
    leave(endpoint);
    endpoint = current();
  }
  if (request->call == Call::txn && parts_.transport->unreachable(endpoint)) {
    // Fail before sending: then it is certain that the transaction had no effect.
    down_ = true;
    fail_later(request, Status::not_sent,
               {kUnavailable, trouble_.empty()
                                  ? "cannot connect to " + parts_.transport->endpoint(endpoint)
                                  : trouble_});
    return;
  }
  CallOptions options;
  options.timeout = request->how.timeout.count() > 0 ? request->how.timeout : patience();
  options.token = token_;
  request->token = token_;
  options.require_leader = request->how.linearizable;
  const Time sent = parts_.loop->now();
  const std::int64_t floor = request->how.linearizable ? parts_.cluster_state->revision : 0;
  ++under_way_;
  ask_once(endpoint, request->call, *request->message, std::move(request->response), options,
           [this, request, endpoint, sent, floor](const CallResult& verdict, Message& body) {
             answered(request, endpoint, sent, floor, verdict, body);
           });
}

// The first of two events counts: the transport's answer, or our own timeout.
void Link::ask_once(std::size_t endpoint, Call call, const Message& request,
                    std::unique_ptr<Message> response, const CallOptions& options,
                    CallAnswer answer) {
  const auto once = std::make_shared<Try>();
  tries_.insert(once);
  once->nothing.reset(response->New());
  once->answer = std::move(answer);
  const auto patience = options.timeout + std::min(kGrace, options.timeout / 2);
  once->end =
      parts_.loop->at(parts_.loop->now() + patience, [this, alive = lifetime_.watch(), once] {
        if (std::exchange(once->over, true)) return;
        if (once->cancel)
          once->cancel();  // else it would keep its channel, and could take effect late
        if (!alive) return;
        tries_.erase(once);
        once->answer({kDeadlineExceeded, "no answer in time, and gRPC did not end the call"},
                     *once->nothing);
      });
  parts_.transport->ask(
      endpoint, call, request, std::move(response), options,
      [this, alive = lifetime_.watch(), once](const CallResult& verdict, Message& body) {
        if (std::exchange(once->over, true) || !alive) return;
        tries_.erase(once);
        parts_.loop->cancel(once->end);
        once->answer(verdict, body);
      },
      &once->cancel);
}

void Link::fail_later(const RequestPtr& request, Status status, const CallResult& verdict) {
  parts_.loop->defer(lifetime_.guard([this, request, status, verdict] {
    request->answer(status, verdict, *request->response, current(), parts_.loop->now());
  }));
}

void Link::answered(const RequestPtr& request, std::size_t endpoint, Time sent, std::int64_t floor,
                    const CallResult& verdict, Message& response) {
  const auto alive = lifetime_.watch();
  --under_way_;
  Status status = status_of(verdict);
  const bool expired = status == Status::token_expired;
  if ((expired || asks_who(verdict)) && !parts_.user.empty()) {
    if (expired && std::exchange(bad_token_, request->token) != request->token) ++bad_tokens_;
    forget_token(request->token);  // no effect if there is a newer token
    if (!std::exchange(request->again, true)) {
      request->response.reset(response.New());
      queue_.push_front(request);
      pump();
      return;
    }
    // Refused twice in a row, as when two members do not know each other's tokens. This is
    // temporary, and the request had no effect. A wrong password is reported by Authenticate
    // instead.
    if (expired && bad_tokens_ < kMostBadTokens) status = Status::not_sent;
    note(endpoint, verdict.message);
  }
  if (status == Status::ok) {
    slow_ = 0;
    bad_tokens_ = 0;
    if (!check(endpoint, request->header(response), floor)) return;
  } else {
    // A request with its own short timeout says little about the server, so its timeout does not
    // count as slow. The timeout of a pinned read says nothing: the cluster is asked instead.
    const bool usual = request->how.timeout.count() == 0;
    const bool pinned = request->how.endpoint.has_value() && !usual;
    if (!pinned || verdict.code != kDeadlineExceeded) {
      failed(endpoint, verdict, usual ? std::optional(sent) : std::nullopt);
    }
  }
  request->answer(status, verdict, response, endpoint, sent);
  if (alive) pump();  // the answer may have destroyed this
}

std::unique_ptr<Stream> Link::open(std::size_t endpoint, StreamKind flow,
                                   StreamListener& listener) {
  return parts_.transport->open(endpoint, flow, token_, listener);
}

// ---- authentication

void Link::with_token(Task task) {
  if (!lacks_token()) {
    task();
    return;
  }
  for_token_.push_back(std::move(task));
  authenticate();
}

void Link::authenticate() {
  if (std::exchange(authenticating_, true)) return;
  etcdpb::AuthenticateRequest request;
  request.set_name(parts_.user);
  request.set_password(parts_.password);
  CallOptions options;
  options.timeout = patience();
  const std::size_t endpoint = current();
  const Time sent = parts_.loop->now();
  const std::uint64_t number = ++authentications_;
  ask_once(endpoint, Call::authenticate, request, std::make_unique<etcdpb::AuthenticateResponse>(),
           options, [this, endpoint, sent, number](const CallResult& verdict, Message& response) {
             const Status status = status_of(verdict);
             const bool latest = number == authentications_;
             if (latest) authenticating_ = false;
             if (is_transient(status)) failed(endpoint, verdict, sent);
             // An older authentication, to an endpoint that was left, counts only if it succeeded
             // while the newer one is still under way.
             if (!latest && (status != Status::ok || !authenticating_)) return;
             authenticated(verdict, static_cast<const etcdpb::AuthenticateResponse&>(response));
           });
}

// Repeats the authentication under way at the current endpoint: keepalives may wait for the token,
// and must not wait for a silent endpoint.
void Link::authenticate_here() {
  if (std::exchange(authenticating_, false)) authenticate();
}

void Link::authenticated(const CallResult& verdict, const etcdpb::AuthenticateResponse& response) {
  authenticating_ = false;
  const auto waiting = std::exchange(without_token_, {});
  for (auto& task : std::exchange(for_token_, {})) parts_.loop->defer(std::move(task));
  const Status status = status_of(verdict);
  if (status == Status::ok) {
    token_ = response.token();
  } else if (verdict.code == kFailedPrecondition &&
             verdict.message.find("not enabled") != std::string::npos) {
    parts_.cluster_state->auth_off = true;
    parts_.log(
        LogLevel::warning,
        "authentication is disabled in the etcd cluster: the user and the password are not used");
  } else {
    // These requests were not sent.
    for (const auto& request : waiting) {
      fail_later(request, is_transient(status) ? Status::not_sent : status, verdict);
    }
    pump();
    return;
  }
  for (auto request = waiting.rbegin(); request != waiting.rend(); ++request) {
    queue_.push_front(*request);
  }
  pump();
}

// ---- is it the same store?

bool Link::check(std::size_t endpoint, const etcdpb::ResponseHeader& header, std::int64_t floor) {
  auto& cluster_state = *parts_.cluster_state;
  if (changed_) return false;
  if (cluster_state.cluster == 0) cluster_state.cluster = header.cluster_id();
  if (header.cluster_id() != 0 && header.cluster_id() != cluster_state.cluster) {
    // Either the list of endpoints mixes clusters, or the cluster was rebuilt.
    cluster_state.foreign[endpoint] = header.cluster_id();
    const auto same =
        std::count(cluster_state.foreign.begin(), cluster_state.foreign.end(), header.cluster_id());
    if (static_cast<std::size_t>(same) * 2 > cluster_state.foreign.size()) {
      // Most endpoints belong to the other cluster, so the cluster was rebuilt. Endpoints that are
      // permanently gone need not agree.
      cluster_state = ClusterState{};
      cluster_state.foreign.resize(parts_.transport->endpoints(), 0);
      cluster_state.current = endpoint;
    } else {
      leave(endpoint);
    }
    changed("the endpoint " + parts_.transport->endpoint(endpoint) + " belongs to another cluster");
    return false;
  }
  if (header.revision() < floor) {
    cluster_state.revision = 0;
    changed("the store was set back: its revision was " + std::to_string(floor) + " and is " +
            std::to_string(header.revision()));
    return false;
  }
  cluster_state.revision = std::max(cluster_state.revision, header.revision());
  if (std::exchange(down_, false)) back();
  return true;
}

void Link::back() {
  if (back_timer_ != TimerId::none) return;
  back_timer_ = parts_.loop->at(std::max(parts_.loop->now(), back_at_ + kBackPause), [this] {
    back_timer_ = TimerId::none;
    back_at_ = parts_.loop->now();
    if (!changed_) listener_.link_back();
  });
}

void Link::changed(const std::string& detail) {
  changed_ = true;  // ignore all further responses
  parts_.loop->defer(lifetime_.guard([this, detail] { listener_.link_store_changed(detail); }));
}

// ---- choosing the endpoint

bool Link::heard(std::size_t endpoint, const etcdpb::ResponseHeader& header) {
  return check(endpoint, header, 0);
}

void Link::failed(std::size_t endpoint, const CallResult& verdict, std::optional<Time> sent) {
  const Status status = status_of(verdict);
  const bool gone = (status == Status::lost && verdict.code != kResourceExhausted) ||
                    verdict.code == kUnavailable;
  if (!gone) return;
  trouble_ = parts_.transport->endpoint(endpoint) + ": " + verdict.message;
  if (verdict.code == kDeadlineExceeded) {
    // Requests that were sent together and timed out together count as one timeout. A single
    // timeout is not an outage.
    if (sent && *sent >= slow_since_) {
      ++slow_;
      slow_since_ = parts_.loop->now();
      // After two consecutive timeouts the connection may be dead. gRPC takes 13 s to detect that.
      if (slow_ > 1) parts_.transport->renew(endpoint);
    }
    down_ |= slow_ > 1;
  } else {
    down_ = true;
  }
  leave(endpoint);
}

void Link::note(std::size_t endpoint, const std::string& what) {
  trouble_ = parts_.transport->endpoint(endpoint) + ": " + what;
}

void Link::silent(std::size_t endpoint, const std::string& what) {
  trouble_ = parts_.transport->endpoint(endpoint) + ": " + what;
  down_ = true;
  parts_.transport->renew(endpoint);
  // Even without another endpoint, report that the connection was left: streams still use the old
  // one.
  if (!leave(endpoint)) {
    tell_left(endpoint);
    authenticate_here();
  }
}

bool Link::leave(std::size_t endpoint) {
  auto& cluster_state = *parts_.cluster_state;
  const std::size_t count = parts_.transport->endpoints();
  if (endpoint != cluster_state.current || count < 2) return false;
  std::optional<std::size_t> next;
  for (std::size_t n = 1; n < count; ++n) {
    const std::size_t candidate = (endpoint + n) % count;
    if (cluster_state.foreign[candidate] != 0) continue;
    if (!next) next = candidate;
    if (!parts_.transport->unreachable(candidate)) {
      next = candidate;
      break;
    }
  }
  if (!next) return false;
  cluster_state.current = *next;
  tell_left(endpoint);
  authenticate_here();
  return true;
}

void Link::tell_left(std::size_t endpoint) {
  parts_.loop->defer(lifetime_.guard([this, endpoint] { listener_.link_left(endpoint); }));
}

}  // namespace baton::etcd
