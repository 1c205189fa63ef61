// Connects one client to the fake cluster. Every request and answer takes time, and can be lost or
// late.
#pragma once

#include "fakes/fake_etcd.h"
#include "manual_loop.h"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::etcd {

// The unit tests always give a ManualLoop to a FakeEtcd.
inline ManualLoop& manual_loop(FakeEtcd& etcd) { return static_cast<ManualLoop&>(etcd.loop()); }

struct FakeAsked {
  std::size_t endpoint = 0;
  Call call{};
  std::shared_ptr<Message> request;
  CallOptions options;
  Time at{};
  template <class T>
  const T& as() const {
    return static_cast<const T&>(*request);
  }
};

// What happens to one call. If the server executes it after its deadline, it lands late: the client
// does not get the result.
struct FakeFate {
  Nanos there = std::chrono::milliseconds(1);
  Nanos back = std::chrono::milliseconds(1);
  bool arrives = true;
  bool answered = true;
  std::optional<CallResult> refuse{};  // the server answers this instead of executing the call
};

inline FakeFate lost_request() { return {.arrives = false}; }
inline FakeFate lost_answer() { return {.answered = false}; }
inline FakeFate lands_after(Nanos there) { return {.there = there, .answered = false}; }
inline FakeFate refused(int code, std::string message) {
  return {.refuse = CallResult{code, std::move(message)}};
}

class FakeEtcdWire final : public Transport {
 public:
  struct Path {
    bool down = false;    // unreachable, and the channel knows it
    bool silent = false;  // nothing arrives in either direction, and there is no error
    int renewed = 0;      // number of the current connection
    int dead = 0;         // connections below this number stay silent
  };

  explicit FakeEtcdWire(FakeEtcd& etcd) : etcd_(etcd), paths_(etcd.members()) {}
  ~FakeEtcdWire() override { *alive_ = false; }

  // ---- for the test
  std::function<FakeFate(const FakeAsked&)> fate;
  // Called for each message that is sent on a stream; true: the message never arrives.
  std::function<bool(std::size_t endpoint, StreamKind, const Message&)> swallow;
  std::function<Nanos()> stream_latency;
  bool timers_stand = false;   // calls do not time out
  bool answers_twice = false;  // each keepalive gets two answers

  void take_down(std::size_t i);
  void bring_up(std::size_t i) { paths_[i].down = false; }
  void silence(std::size_t i, bool silent = true);
  // Makes the current connection silent. The pings of gRPC detect this after 13 s.
  void black_hole(std::size_t i);
  void heal();
  // Breaks the streams of one kind, or all streams.
  void break_streams(std::optional<StreamKind> flow = {},
                     const CallResult& why = {14, "connection reset"});
  std::vector<FakeAsked> take_log() { return std::exchange(log_, {}); }
  const std::vector<FakeAsked>& log() const { return log_; }
  std::size_t count(Call call) const;
  std::size_t streams(StreamKind flow) const;               // the number of open streams
  std::optional<std::size_t> where(StreamKind flow) const;  // endpoint of the newest
  std::size_t sent(StreamKind flow) const {
    return flow == StreamKind::watch ? sent_watch_ : sent_keep_;
  }
  std::size_t most_under_way() const { return most_under_way_; }
  std::size_t under_way() const { return under_way_; }
  Path& path(std::size_t i) { return paths_.at(i); }
  std::vector<std::shared_ptr<Message>> take_stream_log() { return std::exchange(stream_log_, {}); }

  // ---- Transport
  std::size_t endpoints() const override { return paths_.size(); }
  std::string endpoint(std::size_t i) const override { return "node" + std::to_string(i); }
  bool unreachable(std::size_t i) override { return paths_.at(i).down; }
  void renew(std::size_t i) override { ++paths_.at(i).renewed; }
  void ask(std::size_t endpoint, Call call, const Message& request,
           std::unique_ptr<Message> response, const CallOptions& options, CallAnswer answer,
           Task* cancel) override;
  std::unique_ptr<Stream> open(std::size_t endpoint, StreamKind flow, const std::string& token,
                               StreamListener& listener) override;

 private:
  struct PendingCall;
  class FakeStream;
  class Handle;
  ManualLoop& loop() { return manual_loop(etcd_); }
  void finish(const std::shared_ptr<PendingCall>& call, const CallResult& verdict);
  void arrive(const std::shared_ptr<PendingCall>& call, const FakeFate& fate);

  FakeEtcd& etcd_;
  std::vector<Path> paths_;
  std::vector<FakeAsked> log_;
  std::vector<std::shared_ptr<Message>> stream_log_;
  std::vector<std::weak_ptr<FakeStream>> streams_;
  std::vector<std::shared_ptr<PendingCall>> endless_;
  std::size_t sent_watch_ = 0;
  std::size_t sent_keep_ = 0;
  std::size_t under_way_ = 0;
  std::size_t most_under_way_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace baton::etcd
