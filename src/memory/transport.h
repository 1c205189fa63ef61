// Transport: what lies between a memory session and its store. Direct in production; the testing
// store and the simulator lose, delay and double what goes over it.
#pragma once

#include "memory/namespace.h"

#include "common/base/loop.h"
#include "common/base/unique_function.h"

namespace baton::memory {

enum class Traffic { open, join, look, peek, withdraw, verify, operators, heartbeat, watch };

class Transport {
 public:
  virtual ~Transport() = default;
  // Brings a request to the store, where it is carried out; or loses it. On the client's strand.
  virtual void request(Traffic kind, Task at_store) = 0;
  // Brings an answer back, where it runs on the client's strand, never inside the call; or not.
  virtual void answer(Traffic kind, Task at_client) = 0;
  // Brings news nobody asked for (a watch, the end of the session). From any thread.
  virtual void news(Task at_client) = 0;
  // Whether anything can get lost: then requests are given up after a while.
  virtual bool lossy() const noexcept = 0;
};

// Nothing is lost and nothing takes time.
class DirectTransport final : public Transport {
 public:
  explicit DirectTransport(Loop& loop) : loop_(loop) {}
  void request(Traffic, Task at_store) override { at_store(); }
  void answer(Traffic, Task at_client) override { loop_.defer(std::move(at_client)); }
  void news(Task at_client) override { loop_.post_brief(std::move(at_client)); }
  bool lossy() const noexcept override { return false; }

 private:
  Loop& loop_;
};

}  // namespace baton::memory
