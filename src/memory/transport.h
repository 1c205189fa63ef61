// Transport: carries requests, answers and news between a memory session and its store. Production
// uses the direct one. Those of the testing store and the simulator lose, delay and duplicate
// messages.
#pragma once

#include "memory/namespace.h"

#include "common/base/loop.h"
#include "common/base/unique_function.h"

namespace baton::memory {

enum class Traffic { open, join, look, peek, withdraw, verify, operators, heartbeat, watch };

class Transport {
 public:
  virtual ~Transport() = default;
  // Brings a request to the store and runs it there, or loses it. Called on the client's strand.
  virtual void request(Traffic kind, Task at_store) = 0;
  // Brings an answer to the client and runs it on the client's strand, never inside the call; or
  // loses it.
  virtual void answer(Traffic kind, Task at_client) = 0;
  // Brings news that is no answer (a watch has fired, the session has ended). From any thread.
  virtual void news(Task at_client) = 0;
  // Whether messages can be lost. Then the session lets its requests time out.
  virtual bool lossy() const noexcept = 0;
};

// Loses and delays no message.
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
