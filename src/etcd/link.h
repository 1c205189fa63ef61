// Link: sends the requests of one session to the cluster. It chooses the endpoint, adds the user's
// token, limits the number of requests under way, and checks that the same cluster answers.
#pragma once

#include "common/base/lifetime.h"
#include "common/base/loop.h"
#include "common/base/unique_function.h"
#include "etcd/baton_etcd_wire.pb.h"
#include "etcd/transport.h"

#include <baton/options.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace baton::etcd {

// What a client knows about its endpoints. Outlives its sessions.
struct ClusterState {
  std::size_t current = 0;
  std::uint64_t cluster = 0;           // the cluster id; 0: not known yet
  std::int64_t revision = 0;           // the newest seen
  std::vector<std::uint64_t> foreign;  // the other cluster that answered there; 0: none
  bool auth_off = false;               // authentication is disabled in the cluster
};

// Called on the strand, and never inside a call to the link.
class LinkListener {
 public:
  virtual ~LinkListener() = default;
  virtual void link_left(std::size_t endpoint) = 0;  // the link uses another one now
  virtual void link_back() = 0;                      // the cluster answers again
  virtual void link_store_changed(const std::string& detail) = 0;
};

struct LinkParts {
  Loop* loop;
  Transport* transport;
  ClusterState* cluster_state;
  std::string user;
  std::string password;
  std::chrono::milliseconds try_timeout;
  std::function<void(LogLevel, std::string_view)> log;
};

struct RequestOptions {
  std::optional<std::size_t> endpoint{};  // none: the current endpoint
  bool linearizable = true;               // the answer is not older than the request
  bool bypass_limit = false;              // ignores the limit of requests under way
  bool front = false;                     // goes ahead of all requests that wait
  std::chrono::milliseconds timeout{0};   // 0: the default
  std::function<bool()> wanted{};         // checked before sending: false cancels it
};

// The timeout of a read from one given member. It is short because the cluster can be asked
// instead.
inline constexpr std::chrono::milliseconds kPinnedPatience{500};

template <class Response>
struct Reply {
  Status status;
  const CallResult& verdict;
  Response& body;
  std::size_t endpoint;
  Time sent;
  bool ok() const noexcept { return status == Status::ok; }
  Error error(std::string_view what) const { return call_error(status, verdict, what); }
};

class Link {
 public:
  Link(LinkParts parts, LinkListener& listener);
  ~Link();  // no answer handler is called after this
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Sends the request once; the only retry is with a new token. The answer handler is called once,
  // on the strand, and never inside the call. It is not called if the response shows that the store
  // has changed.
  template <class Response, class Request, class F>
  void ask(Call call, const Request& request, const RequestOptions& how, F answer);

  std::unique_ptr<Stream> open(std::size_t endpoint, StreamKind flow, StreamListener& listener);

  std::size_t current() const noexcept { return parts_.cluster_state->current; }
  std::int64_t revision() const noexcept {
    return parts_.cluster_state->revision;
  }  // the newest seen
  std::size_t endpoints() const { return parts_.transport->endpoints(); }
  std::string endpoint() const { return parts_.transport->endpoint(current()); }
  bool down() const noexcept { return down_; }
  const std::string& trouble() const noexcept { return trouble_; }

  // For streams: report that a message came, that the stream ended, or that it stays silent.
  // heard() returns false if the message must be ignored because it comes from another store.
  bool heard(std::size_t endpoint, const etcdpb::ResponseHeader& header);
  void failed(std::size_t endpoint, const CallResult& verdict,
              std::optional<Time> sent = std::nullopt);
  void silent(std::size_t endpoint, const std::string& what);
  void note(std::size_t endpoint, const std::string& what);  // only for messages
  // forget_token(): a stream was refused because of this token. The next stream gets a new token.
  const std::string& token() const noexcept { return token_; }
  void forget_token(const std::string& used) {
    if (used != token_) return;
    token_.clear();
    parts_.cluster_state->auth_off = false;  // authentication may have been enabled since
  }
  bool lacks_token() const;
  // Runs the task when a token was obtained, or cannot be obtained. Runs it inside the call if no
  // token is missing.
  void with_token(Task task);

 private:
  struct Record {
    Call call;
    std::unique_ptr<Message> message;
    std::unique_ptr<Message> response;
    const etcdpb::ResponseHeader& (*header)(const Message&);
    RequestOptions how;
    bool again = false;  // it was already resent with a new token
    std::string token;   // the token with which it was sent
    UniqueFunction<void(Status, const CallResult&, Message&, std::size_t, Time)> answer;
  };
  using RequestPtr = std::shared_ptr<Record>;

  struct Try;

  void submit(RequestPtr request);
  void pump();
  void send(const RequestPtr& request);
  // Calls `answer` once, within a bounded time of the loop's clock, unless the link is destroyed
  // first.
  void ask_once(std::size_t endpoint, Call call, const Message& request,
                std::unique_ptr<Message> response, const CallOptions& options, CallAnswer answer);
  void answered(const RequestPtr& request, std::size_t endpoint, Time sent, std::int64_t floor,
                const CallResult& verdict, Message& response);
  void fail_later(const RequestPtr& request, Status status, const CallResult& verdict);
  void back();
  void authenticate();
  void authenticate_here();  // restarts an authentication under way, here
  void authenticated(const CallResult& verdict, const etcdpb::AuthenticateResponse& response);
  bool check(std::size_t endpoint, const etcdpb::ResponseHeader& header, std::int64_t floor);
  void changed(const std::string& detail);
  bool leave(std::size_t endpoint);  // false: there is no other endpoint
  void tell_left(std::size_t endpoint);
  std::chrono::milliseconds patience() const;

  const LinkParts parts_;
  LinkListener& listener_;
  std::string token_;
  std::string bad_token_;  // the last token that was refused
  int bad_tokens_ = 0;     // tokens refused since the last success
  bool authenticating_ = false;
  std::uint64_t authentications_ = 0;  // started so far
  std::vector<RequestPtr> without_token_;
  std::vector<Task> for_token_;
  std::deque<RequestPtr> queue_;
  std::size_t under_way_ = 0;
  std::set<std::shared_ptr<Try>> tries_;
  int slow_ = 0;       // consecutive timeouts
  Time slow_since_{};  // timeouts of requests sent before this do not count
  Time back_at_ = Time{} - std::chrono::seconds(1);
  TimerId back_timer_ = TimerId::none;
  bool down_ = false;
  bool changed_ = false;
  std::string trouble_;
  Lifetime lifetime_;
};

template <class Response, class Request, class F>
void Link::ask(Call call, const Request& request, const RequestOptions& how, F answer) {
  auto record = std::make_shared<Record>();
  record->call = call;
  record->message = std::make_unique<Request>(request);
  record->response = std::make_unique<Response>();
  record->header = [](const Message& message) -> const etcdpb::ResponseHeader& {
    return static_cast<const Response&>(message).header();
  };
  record->how = how;
  record->answer = [answer = std::move(answer)](Status status, const CallResult& verdict,
                                                Message& body, std::size_t endpoint,
                                                Time sent) mutable {
    Reply<Response> reply{status, verdict, static_cast<Response&>(body), endpoint, sent};
    answer(reply);
  };
  submit(std::move(record));
}

}  // namespace baton::etcd
