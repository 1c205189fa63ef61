// Transport: one channel to each endpoint, to ask and to stream on. The real one is Channels,
// over gRPC; tests have others. Everything happens on the strand of the client's Loop.
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
  std::string token;           // of authenticate; empty: none
  bool require_leader = true;  // a member without a leader refuses at once
};

// Once, never inside the call, unless the wire is destroyed first.
using CallAnswer = UniqueFunction<void(const CallResult&, Message& response)>;

// Never called inside a call to the stream or the wire.
class StreamListener {
 public:
  virtual ~StreamListener() = default;
  virtual void stream_message(const Message& message) = 0;
  // For good; nothing comes after it.
  virtual void stream_ended(const CallResult& why) = 0;
};

class Stream {
 public:
  // Ends it; the listener hears nothing any more. Fine inside the listener's calls.
  virtual ~Stream() = default;
  // Goes out in order; nothing is said if it cannot.
  virtual void send(const Message& message) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::size_t endpoints() const = 0;
  virtual std::string endpoint(std::size_t i) const = 0;  // "10.0.0.5:2379"
  // The channel knows that it cannot reach this endpoint: nothing that is asked now is sent.
  virtual bool unreachable(std::size_t i) = 0;
  // What is asked from now on goes over another connection: this one is silent.
  virtual void renew(std::size_t i) = 0;

  // cancel: gets what ends the call before its time, if it is still under way; may stay as it is.
  virtual void ask(std::size_t endpoint, Call call, const Message& request,
                   std::unique_ptr<Message> response, const CallOptions& options, CallAnswer answer,
                   Task* cancel = nullptr) = 0;
  virtual std::unique_ptr<Stream> open(std::size_t endpoint, StreamKind flow,
                                       const std::string& token, StreamListener& listener) = 0;
};

}  // namespace baton::etcd
