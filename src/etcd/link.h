// Link: how one session asks the cluster: which endpoint, under which name, how many at a time,
// and whether what answers is still the same store.
#pragma once

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

// What a client knows of its endpoints, longer than one session.
struct ClusterState {
  std::size_t current = 0;
  std::uint64_t cluster = 0;           // 0: not known yet
  std::int64_t revision = 0;           // the newest seen
  std::vector<std::uint64_t> foreign;  // as which other cluster it has answered; 0: as none
  bool auth_off = false;               // the servers do not ask who we are
};

// Told on the strand, never inside a call to the link.
class LinkListener {
 public:
  virtual ~LinkListener() = default;
  virtual void link_left(std::size_t endpoint) = 0;  // we ask another one now
  virtual void link_back() = 0;                      // answers come again
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
  std::optional<std::size_t> endpoint{};  // none: where we ask everything
  bool linearizable = true;               // the answer is not older than the question
  bool bypass_limit = false;              // waits for no room
  bool front = false;                     // before all others that wait for room
  std::chrono::milliseconds timeout{0};   // 0: the usual
  std::function<bool()> wanted{};         // asked before it is sent; none: it is
};

// How long one member alone is waited for: all of them can be asked instead.
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
  ~Link();  // no answer comes after this
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // One try. The answer comes once, on the strand, never inside the call.
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

  // For streams: what came on them, and that they ended or stay silent. heard() is false if what
  // came does not count, because it comes from another store.
  bool heard(std::size_t endpoint, const etcdpb::ResponseHeader& header);
  void failed(std::size_t endpoint, const CallResult& verdict,
              std::optional<Time> sent = std::nullopt);
  void silent(std::size_t endpoint, const std::string& what);
  void note(std::size_t endpoint, const std::string& what);  // for messages
  // A stream was refused for this token: the next one gets another.
  const std::string& token() const noexcept { return token_; }
  void forget_token(const std::string& used) {
    if (used != token_) return;
    token_.clear();
    parts_.cluster_state->auth_off = false;  // users may have been turned on since we heard of none
  }
  bool lacks_token() const;
  // Once we have a token, or cannot get one; inside the call if none is missing.
  void with_token(Task task);

 private:
  struct Record {
    Call call;
    std::unique_ptr<Message> message;
    std::unique_ptr<Message> response;
    const etcdpb::ResponseHeader& (*header)(const Message&);
    RequestOptions how;
    bool again = false;  // with a new token
    std::string token;   // that it was sent with
    UniqueFunction<void(Status, const CallResult&, Message&, std::size_t, Time)> answer;
  };
  using RequestPtr = std::shared_ptr<Record>;

  struct Try;

  void submit(RequestPtr request);
  void pump();
  void send(const RequestPtr& request);
  // Answers once, in bounded time by our clock, while the link is there.
  void ask_once(std::size_t endpoint, Call call, const Message& request,
                std::unique_ptr<Message> response, const CallOptions& options, CallAnswer answer);
  void answered(const RequestPtr& request, std::size_t endpoint, Time sent, std::int64_t floor,
                const CallResult& verdict, Message& response);
  void fail_later(const RequestPtr& request, Status status, const CallResult& verdict);
  void back();
  void authenticate();
  void authenticate_here();  // if it was asked for elsewhere, or on another connection
  void authenticated(const CallResult& verdict, const etcdpb::AuthenticateResponse& response);
  bool check(std::size_t endpoint, const etcdpb::ResponseHeader& header, std::int64_t floor);
  void changed(const std::string& detail);
  bool leave(std::size_t endpoint);  // false: there is nowhere else to go
  void tell_left(std::size_t endpoint);
  std::chrono::milliseconds patience() const;

  const LinkParts parts_;
  LinkListener& listener_;
  std::string token_;
  std::string bad_token_;  // the last that was refused
  int bad_tokens_ = 0;     // how many since one was good
  bool authenticating_ = false;
  std::uint64_t authentications_ = 0;  // begun
  std::vector<RequestPtr> without_token_;
  std::vector<Task> for_token_;
  std::deque<RequestPtr> queue_;
  std::size_t under_way_ = 0;
  std::set<std::shared_ptr<Try>> tries_;
  int slow_ = 0;       // tries in a row that were not answered in time
  Time slow_since_{};  // those that were sent before count as one
  Time back_at_ = Time{} - std::chrono::seconds(1);
  TimerId back_timer_ = TimerId::none;
  bool down_ = false;
  bool changed_ = false;
  std::string trouble_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
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
