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

// A tag that the completion queue returns. It must live until complete() was called for each
// operation that was started with it.
class CompletionTag {
 public:
  virtual ~CompletionTag() = default;
  // Called on the strand. over: the loop has ended, so call no listener.
  virtual void complete(bool ok, bool over) = 0;
  // Cancels a call that is under way. Called on the strand.
  virtual void cancel() noexcept {}
};

// The registry of the calls of one loop. Use it on the strand. Calls share its ownership, so it
// outlives the loop.
class CallRegistry {
 public:
  virtual ~CallRegistry() = default;
  virtual grpc::CompletionQueue& queue() noexcept = 0;
  virtual bool ended() const noexcept = 0;  // no call may be started any more
  // Adds and removes a call that must be cancelled when the loop ends.
  virtual void began(CompletionTag* call) = 0;
  virtual void finished(CompletionTag* call) = 0;
};

// The loop has one thread and one completion queue. gRPC makes progress only while a thread polls,
// and gRPC's own callback threads sleep for up to 100 ms (gRPC 1.51). Steps may run on calling
// threads, as on any Strand. They may start calls; the loop's thread completes them.
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
  bool on_strand() const noexcept override;
  bool may_oversleep() const noexcept override { return true; }
  void nudge() noexcept override;

  std::shared_ptr<CallRegistry> calls() const;

  // Cancels the calls under way, waits for their completion, and ends the thread. Idempotent. On
  // the loop's own thread it does not wait: the thread ends after the current step, and keeps the
  // state that it needs alive.
  void stop() noexcept;
  bool on_thread() const noexcept { return thread_.get_id() == std::this_thread::get_id(); }

 private:
  class State;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace baton::etcd
