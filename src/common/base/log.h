// Log lines of a client: queued by whoever has something to say, written by a thread of their own.
#pragma once

#include <baton/options.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

namespace baton::internal {

using LogFunction = std::function<void(LogLevel, std::string_view)>;

// A log that blocks (a full pipe on stderr) must not stop heartbeats: lines are queued. The thread
// is started with the first line; most clients never have one. Bounded: what does not fit is
// counted.
class LogQueue {
 public:
  // sink: the program's function; empty: spdlog to stderr, warnings and up.
  explicit LogQueue(const LogFunction& sink);
  ~LogQueue();

  void write(LogLevel level, std::string_view text) noexcept;  // any thread, never blocks
  // Waits until what was written is out, or `wait` is over. Returns at once on its own thread.
  void flush(std::chrono::milliseconds wait) noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// A function that writes to the queue and keeps it alive.
LogFunction log_to(std::shared_ptr<LogQueue> queue);

}  // namespace baton::internal
