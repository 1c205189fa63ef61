// LogQueue: queues the log lines of a client and writes them on a separate thread.
#pragma once

#include <baton/options.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

namespace baton::internal {

using LogFunction = std::function<void(LogLevel, std::string_view)>;

// A log function that blocks (a full pipe on stderr) must not stop heartbeats, so lines are queued.
// The first line starts the thread; most clients never log a line. The queue is bounded: lines that
// do not fit are dropped and counted.
class LogQueue {
 public:
  // sink: the program's log function. If empty, spdlog writes warnings and errors to stderr.
  explicit LogQueue(const LogFunction& sink);
  ~LogQueue();

  void write(LogLevel level, std::string_view text) noexcept;  // any thread, never blocks
  // Waits until all queued lines are written, at most for `wait`. Returns at once on the thread of
  // the queue.
  void flush(std::chrono::milliseconds wait) noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// A function that writes to the queue and keeps it alive.
LogFunction log_to(std::shared_ptr<LogQueue> queue);

}  // namespace baton::internal
