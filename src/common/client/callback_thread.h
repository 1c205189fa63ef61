// CallbackThread: runs handlers of users in order, one at a time, on a thread that is not the
// loop's.
#pragma once

#include "common/base/log.h"
#include "common/base/unique_function.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>

namespace baton::internal {

class CallbackThread {
 public:
  explicit CallbackThread(LogFunction log);
  ~CallbackThread();  // stop(0)

  // From any thread. A task may throw; the exception is logged. Tasks also run after stop().
  void post(Task task);
  // Like post(), but the task runs after `delay` at the earliest, and stop() does not wait for it.
  void post_late(Task task, std::chrono::milliseconds delay);

  // Waits at most `wait` until the posted tasks have run. If they have not, or if it is called on
  // the thread itself, it returns and the thread finishes them alone. Returns how many posted tasks
  // have not ended.
  std::size_t stop(std::chrono::milliseconds wait) noexcept;
  bool on_thread() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace baton::internal
