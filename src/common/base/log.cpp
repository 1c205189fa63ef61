#include "common/base/log.h"
#include "common/base/mutex.h"

#include <baton/spdlog.h>

#include "common/base/signal_shield.h"

#include <spdlog/sinks/stdout_color_sinks.h>

#include <deque>
#include <string>
#include <thread>
#include <utility>

namespace baton::internal {

namespace {

constexpr std::size_t kMostLines = 1000;

const LogFunction& default_log() {
  static const auto* const log = [] {
    auto logger = std::make_shared<spdlog::logger>(
        "baton", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    logger->set_level(spdlog::level::warn);
    return new LogFunction(to_spdlog(std::move(logger)));  // NOLINT: threads may log during exit
  }();
  return *log;
}

}  // namespace

struct LogQueue::State {
  void loop() {
    MutexLock guard(mutex);
    for (;;) {
      while (!stopping && lines.empty()) changed.wait(guard);
      if (lines.empty()) return;
      const auto [level, text] = std::move(lines.front());
      lines.pop_front();
      const std::size_t lost = std::exchange(dropped, 0);
      writing = true;
      guard.unlock();
      call(level, text);
      if (lost > 0) call(LogLevel::warning, std::to_string(lost) + " log lines were dropped");
      guard.lock();
      writing = false;
      changed.notify_all();
    }
  }

  void call(LogLevel level, const std::string& text) noexcept {
    try {
      sink(level, text);
    } catch (...) {  // NOLINT(bugprone-empty-catch): the log itself failed
    }
  }

  LogFunction sink;
  Mutex mutex;
  Condition changed;
  std::deque<std::pair<LogLevel, std::string>> lines BATON_GUARDED_BY(mutex);
  std::size_t dropped BATON_GUARDED_BY(mutex) = 0;
  bool started BATON_GUARDED_BY(mutex) = false;
  bool writing BATON_GUARDED_BY(mutex) = false;
  bool stopping BATON_GUARDED_BY(mutex) = false;
  std::thread::id thread BATON_GUARDED_BY(mutex);
};

LogQueue::LogQueue(const LogFunction& sink) : state_(std::make_shared<State>()) {
  state_->sink = sink ? sink : default_log();
}

LogQueue::~LogQueue() {
  const MutexLock guard(state_->mutex);
  state_->stopping = true;  // the thread writes the remaining lines, then ends
  state_->changed.notify_all();
}

void LogQueue::write(LogLevel level, std::string_view text) noexcept {
  try {
    const MutexLock guard(state_->mutex);
    if (state_->lines.size() >= kMostLines) {
      ++state_->dropped;
      return;
    }
    state_->lines.emplace_back(level, text);
    state_->changed.notify_all();
    if (state_->started) return;
    const SignalShield shield;
    std::thread thread([state = state_] { state->loop(); });
    state_->started = true;
    state_->thread = thread.get_id();
    thread.detach();
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory or no thread
  }
}

void LogQueue::flush(std::chrono::milliseconds wait) noexcept {
  State& s = *state_;
  const auto until = Condition::Clock::now() + wait;
  MutexLock guard(s.mutex);
  if (s.thread == std::this_thread::get_id()) return;
  while (s.started && (!s.lines.empty() || s.writing)) {
    if (!s.changed.wait_until(guard, until)) return;
  }
}

LogFunction log_to(std::shared_ptr<LogQueue> queue) {
  return [queue = std::move(queue)](LogLevel level, std::string_view text) {
    queue->write(level, text);
  };
}

}  // namespace baton::internal
