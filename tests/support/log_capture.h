// Collects the log lines of clients. Copies share the lines, so clients may outlive a copy.
#pragma once

#include <baton/options.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::test {

class LogCapture {
 public:
  using Line = std::pair<LogLevel, std::string>;

  std::function<void(LogLevel, std::string_view)> sink() const {
    return [state = state_](LogLevel level, std::string_view text) {
      const std::lock_guard guard(state->mutex);
      state->lines.emplace_back(level, std::string(text));
    };
  }

  std::vector<Line> lines() const {
    const std::lock_guard guard(state_->mutex);
    return state_->lines;
  }

  // The number of lines of this level that contain the text.
  std::size_t count(LogLevel level, std::string_view part = {}) const {
    std::size_t n = 0;
    for (const auto& [l, text] : lines()) n += l == level && text.find(part) != text.npos;
    return n;
  }

 private:
  struct State {
    std::mutex mutex;
    std::vector<Line> lines;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace baton::test
