// Transport: sends one request, or opens one stream, to a given endpoint. Channels implements it
// over gRPC; tests have other implementations. All calls and callbacks run on the strand of the
// client's Loop.
#pragma once

#include "common/base/unique_function.h"
#include "etcd/status.h"

#include <google/protobuf/message_lite.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace baton::etcd {

using Message = google::protobuf::MessageLite;

enum class Call {
  range,
  txn,
  lease_grant,
  lease_revoke,
  lease_time_to_live,
  authenticate,
  status,
};
enum class StreamKind { watch, keep_alive };

struct CallOptions {
  std::chrono::milliseconds timeout{};
  std::string token;           // from Call::authenticate; empty: none
  bool require_leader = true;  // a member without a leader refuses the call at once
};

// Called once, and never inside ask(). Not called if the transport is destroyed first.
using CallAnswer = UniqueFunction<void(const CallResult&, Message& response)>;

// Its functions are never called inside a call to the stream or the transport.
class StreamListener {
 public:
  virtual ~StreamListener() = default;
  virtual void stream_message(const Message& message) = 0;
  // The stream has ended. No further call to the listener follows.
  virtual void stream_ended(const CallResult& why) = 0;
};

class Stream {
 public:
  // Ends the stream; the listener is not called any more. Allowed inside the listener's functions.
  virtual ~Stream() = default;
  // Sends messages in the order of the calls. A failure is not reported here.
  virtual void send(const Message& message) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::size_t endpoints() const = 0;
  virtual std::string endpoint(std::size_t i) const = 0;  // "10.0.0.5:2379"
  // True if the channel knows that it cannot reach this endpoint: a request made now is not sent.
  virtual bool unreachable(std::size_t i) = 0;
  // Replaces the connection, which is silent: later requests use a new one.
  virtual void renew(std::size_t i) = 0;

  // cancel: if not null, receives a task that cancels the call while it is under way. An
  // implementation may leave it unset.
  virtual void ask(std::size_t endpoint, Call call, const Message& request,
                   std::unique_ptr<Message> response, const CallOptions& options, CallAnswer answer,
                   Task* cancel = nullptr) = 0;
  virtual std::unique_ptr<Stream> open(std::size_t endpoint, StreamKind flow,
                                       const std::string& token, StreamListener& listener) = 0;
};

}  // namespace baton::etcd
