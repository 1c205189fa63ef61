#include "etcd/etcd_link.h"

#include <algorithm>

namespace baton::internal {

using std::chrono::milliseconds;

namespace {

constexpr std::size_t kMostUnderWay = 256;
constexpr milliseconds kLongestTry{8'000};
constexpr int kDeadlineExceeded = 4;
constexpr int kFailedPrecondition = 9;
constexpr int kUnavailable = 14;

// Said to whoever comes without a token, where users are turned on.
bool asks_who(const EtcdVerdict& verdict) {
  return verdict.message.find("user name is empty") != std::string::npos;
}

}  // namespace

EtcdLink::EtcdLink(EtcdLinkParts parts, EtcdLinkListener& listener)
    : parts_(std::move(parts)), listener_(listener) {
  parts_.atlas->foreign.resize(parts_.wire->endpoints(), false);
}

EtcdLink::~EtcdLink() { *alive_ = false; }

milliseconds EtcdLink::patience() const {
  return std::min(parts_.try_timeout * (1 << std::min(slow_, 4)), kLongestTry);
}

// ---- asking

void EtcdLink::submit(RequestPtr request) {
  if (request->how.urgent) {
    send(request);
    return;
  }
  queue_.push_back(std::move(request));
  pump();
}

void EtcdLink::pump() {
  while (under_way_ < kMostUnderWay && !queue_.empty()) {
    const auto next = std::move(queue_.front());
    queue_.pop_front();
    send(next);
  }
}

bool EtcdLink::needs_token() const {
  return !parts_.user.empty() && token_.empty() && !parts_.atlas->auth_off;
}

void EtcdLink::send(const RequestPtr& request) {
  if (needs_token()) {
    without_token_.push_back(request);
    authenticate();
    return;
  }
  std::size_t endpoint = request->how.endpoint.value_or(current());
  if (parts_.wire->unreachable(endpoint) && !request->how.endpoint) {
    leave(endpoint);
    endpoint = current();
  }
  if (request->call == EtcdCall::txn && parts_.wire->unreachable(endpoint)) {
    // Said before it is sent: then there is no doubt whether it happened.
    down_ = true;
    fail_later(
        request, EtcdStatus::not_sent,
        {kUnavailable,
         trouble_.empty() ? "cannot connect to " + parts_.wire->endpoint(endpoint) : trouble_});
    return;
  }
  EtcdCallOptions options;
  options.timeout = request->how.timeout.count() > 0 ? request->how.timeout : patience();
  options.token = token_;
  options.require_leader = request->how.fresh;
  const Time sent = parts_.loop->now();
  const std::int64_t floor = request->how.fresh ? parts_.atlas->revision : 0;
  ++under_way_;
  parts_.wire->ask(endpoint, request->call, *request->message, std::move(request->response),
                   options,
                   [this, alive = alive_, request, endpoint, sent, floor](
                       const EtcdVerdict& verdict, EtcdMessage& response) {
                     if (*alive) answered(request, endpoint, sent, floor, verdict, response);
                   });
}

void EtcdLink::fail_later(const RequestPtr& request, EtcdStatus status,
                          const EtcdVerdict& verdict) {
  parts_.loop->defer([this, alive = alive_, request, status, verdict] {
    if (!*alive) return;
    request->answer(status, verdict, *request->response, current(), parts_.loop->now());
  });
}

void EtcdLink::answered(const RequestPtr& request, std::size_t endpoint, Time sent,
                        std::int64_t floor, const EtcdVerdict& verdict, EtcdMessage& response) {
  const auto alive = alive_;
  --under_way_;
  const EtcdStatus status = etcd_status(verdict);
  if ((status == EtcdStatus::token_expired || asks_who(verdict)) && !parts_.user.empty() &&
      !std::exchange(request->again, true)) {
    forget_token();
    request->response.reset(response.New());
    send(request);
    return;
  }
  if (status == EtcdStatus::ok) {
    slow_ = 0;
    if (!check(endpoint, request->header(response), floor)) return;
  } else {
    failed(endpoint, verdict);
  }
  request->answer(status, verdict, response, endpoint, sent);
  if (*alive) pump();
}

std::unique_ptr<EtcdStream> EtcdLink::open(std::size_t endpoint, EtcdFlow flow,
                                           EtcdStreamListener& listener) {
  return parts_.wire->open(endpoint, flow, token_, listener);
}

// ---- who we are

void EtcdLink::with_token(Task task) {
  if (!needs_token()) {
    task();
    return;
  }
  for_token_.push_back(std::move(task));
  authenticate();
}

void EtcdLink::authenticate() {
  if (std::exchange(authenticating_, true)) return;
  etcdpb::AuthenticateRequest request;
  request.set_name(parts_.user);
  request.set_password(parts_.password);
  EtcdCallOptions options;
  options.timeout = patience();
  const std::size_t endpoint = current();
  parts_.wire->ask(
      endpoint, EtcdCall::authenticate, request, std::make_unique<etcdpb::AuthenticateResponse>(),
      options, [this, alive = alive_, endpoint](const EtcdVerdict& verdict, EtcdMessage& response) {
        if (!*alive) return;
        if (etcd_passes(etcd_status(verdict))) failed(endpoint, verdict);
        authenticated(verdict, static_cast<const etcdpb::AuthenticateResponse&>(response));
      });
}

void EtcdLink::authenticated(const EtcdVerdict& verdict,
                             const etcdpb::AuthenticateResponse& response) {
  authenticating_ = false;
  const auto waiting = std::exchange(without_token_, {});
  for (auto& task : std::exchange(for_token_, {})) parts_.loop->defer(std::move(task));
  const EtcdStatus status = etcd_status(verdict);
  if (status == EtcdStatus::ok) {
    token_ = response.token();
  } else if (verdict.code == kFailedPrecondition &&
             verdict.message.find("not enabled") != std::string::npos) {
    parts_.atlas->auth_off = true;
    parts_.log(LogLevel::warning,
               "the etcd cluster does not ask who its clients are: user and password are not used");
  } else {
    for (const auto& request : waiting) fail_later(request, status, verdict);
    return;
  }
  for (const auto& request : waiting) send(request);
}

// ---- the same store?

bool EtcdLink::check(std::size_t endpoint, const etcdpb::ResponseHeader& header,
                     std::int64_t floor) {
  auto& atlas = *parts_.atlas;
  if (changed_) return false;
  if (atlas.cluster == 0) atlas.cluster = header.cluster_id();
  if (header.cluster_id() != atlas.cluster) {
    // A list of endpoints that mixes clusters, or a cluster that was built anew.
    atlas.foreign[endpoint] = true;
    if (std::all_of(atlas.foreign.begin(), atlas.foreign.end(), [](bool f) { return f; })) {
      atlas = EtcdAtlas{};
      atlas.foreign.resize(parts_.wire->endpoints(), false);
    } else {
      leave(endpoint);
    }
    changed("the endpoint " + parts_.wire->endpoint(endpoint) + " belongs to another cluster");
    return false;
  }
  if (header.revision() < floor) {
    atlas.revision = 0;
    changed("the store was set back: its revision was " + std::to_string(floor) + " and is " +
            std::to_string(header.revision()));
    return false;
  }
  atlas.revision = std::max(atlas.revision, header.revision());
  if (std::exchange(down_, false)) {
    parts_.loop->defer([this, alive = alive_] {
      if (*alive && !changed_) listener_.link_back();
    });
  }
  return true;
}

void EtcdLink::changed(const std::string& detail) {
  changed_ = true;  // nothing it says counts any more
  parts_.loop->defer([this, alive = alive_, detail] {
    if (*alive) listener_.link_store_changed(detail);
  });
}

// ---- which endpoint

bool EtcdLink::heard(std::size_t endpoint, const etcdpb::ResponseHeader& header) {
  return check(endpoint, header, 0);
}

void EtcdLink::failed(std::size_t endpoint, const EtcdVerdict& verdict) {
  const EtcdStatus status = etcd_status(verdict);
  const bool gone = status == EtcdStatus::lost || verdict.code == kUnavailable;
  if (!gone) return;
  trouble_ = parts_.wire->endpoint(endpoint) + ": " + verdict.message;
  if (verdict.code == kDeadlineExceeded) ++slow_;
  down_ = true;
  leave(endpoint);
}

void EtcdLink::silent(std::size_t endpoint, const std::string& what) {
  trouble_ = parts_.wire->endpoint(endpoint) + ": " + what;
  down_ = true;
  parts_.wire->renew(endpoint);
  leave(endpoint);
}

void EtcdLink::leave(std::size_t endpoint) {
  auto& atlas = *parts_.atlas;
  const std::size_t count = parts_.wire->endpoints();
  if (endpoint != atlas.current || count < 2) return;
  std::optional<std::size_t> next;
  for (std::size_t n = 1; n < count; ++n) {
    const std::size_t candidate = (endpoint + n) % count;
    if (atlas.foreign[candidate]) continue;
    if (!next) next = candidate;
    if (!parts_.wire->unreachable(candidate)) {
      next = candidate;
      break;
    }
  }
  if (!next) return;
  atlas.current = *next;
  parts_.loop->defer([this, alive = alive_, endpoint] {
    if (*alive) listener_.link_left(endpoint);
  });
}

}  // namespace baton::internal
