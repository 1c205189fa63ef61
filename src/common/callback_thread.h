// CallbackThread: where handlers of users run, in order, one at a time. Never the loop.
#pragma once

#include "common/log.h"
#include "common/unique_function.h"

#include <chrono>
#include <memory>
#include <thread>

namespace baton::internal {

class CallbackThread {
 public:
  explicit CallbackThread(LogFunction log);
  ~CallbackThread();  // stop(0)

  // Any thread. Tasks may throw: it is logged. After stop() it runs all the same.
  void post(Task task);

  // No more tasks are awaited; those posted before still run, within `wait`. After that, and when
  // called on the thread itself, it returns and the thread finishes alone.
  void stop(std::chrono::milliseconds wait) noexcept;
  bool on_thread() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace baton::internal
