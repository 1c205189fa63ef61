// CompletionLoop: a Loop whose thread polls a gRPC completion queue.
#pragma once

#include "etcd/namespace.h"

#include "common/base/clock.h"
#include "common/base/loop.h"
#include "common/base/strand.h"

#include <grpcpp/completion_queue.h>

#include <memory>
#include <thread>

namespace baton::etcd {

// What the completion queue gives back. Lives until complete() was called for each operation that
// was started with it.
class CompletionTag {
 public:
  virtual ~CompletionTag() = default;
  // On the strand. over: the loop has ended; nobody is to be told any more.
  virtual void complete(bool ok, bool over) = 0;
  // Asks a call that is under way to end. On the strand.
  virtual void cancel() noexcept {}
};

// The calls of one loop. On the strand. Calls keep it: it outlives the loop.
class CallRegistry {
 public:
  virtual ~CallRegistry() = default;
  virtual grpc::CompletionQueue& queue() noexcept = 0;
  virtual bool ended() const noexcept = 0;  // no call may be started any more
  // Who is to be cancelled when the loop ends.
  virtual void began(CompletionTag* call) = 0;
  virtual void finished(CompletionTag* call) = 0;
};

// One thread, one completion queue: gRPC makes progress only while somebody polls, and its own
// threads for callbacks sleep up to 100 ms (gRPC 1.51). Steps may run on calling threads, as on any
// Strand: they may start calls, which are completed on the loop's thread.
class CompletionLoop final : public Loop {
 public:
  explicit CompletionLoop(Strand::ErrorLog log);
  ~CompletionLoop() override;  // stop()

  const Clock& clock() const noexcept override { return real_clock(); }
  void defer(Task task) override;
  TimerId at(Time when, Task task) override;
  void cancel(TimerId id) override;
  void post(Task task) override;
  void run(Task task) override;
  bool may_oversleep() const noexcept override { return true; }
  void nudge() noexcept override;

  std::shared_ptr<CallRegistry> calls() const;

  // Ends the thread; cancels and collects what is under way. Idempotent. On the loop's own thread
  // it only asks: the thread ends after the current step, and keeps what it needs alive.
  void stop() noexcept;
  bool on_thread() const noexcept { return thread_.get_id() == std::this_thread::get_id(); }

 private:
  class State;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace baton::etcd
