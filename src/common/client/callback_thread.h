// CallbackThread: where handlers of users run, in order, one at a time. Never the loop.
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

  // Any thread. Tasks may throw: it is logged. After stop() it runs all the same.
  void post(Task task);
  // The same for a task that stop() does not wait for, and not before `delay` is over.
  void post_late(Task task, std::chrono::milliseconds delay);

  // No more tasks are awaited; those posted before still run, within `wait`. After that, and when
  // called on the thread itself, it returns and the thread finishes alone. Returns how many posted
  // tasks have not ended.
  std::size_t stop(std::chrono::milliseconds wait) noexcept;
  bool on_thread() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace baton::internal
