// Attempt: an acquisition, from the call to its outcome.
#pragma once

#include "common/recipe/acquisition.h"
#include "common/client/hold.h"
#include "common/base/loop.h"
#include "common/seam/session.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace baton::internal {

// Receives the outcome of an attempt. Called once, on the strand. If the attempt is refused, or the
// loop has stopped, another thread calls it.
class AttemptSink {
 public:
  virtual ~AttemptSink() = default;
  // False: the caller no longer waits. The engine then releases the hold.
  virtual bool offer(Result<std::shared_ptr<Hold>> outcome) noexcept = 0;
};

struct Attempt {
  Attempt(LockName lock, bool once, std::shared_ptr<AttemptSink> to)
      : name(std::move(lock)), machine(once), sink(std::move(to)) {}

  const LockName name;
  Acquisition machine;
  std::shared_ptr<AttemptSink> sink;
  Time started{};
  Time deadline = kNever;
  Errc late = Errc::timeout;  // the error when the deadline passes
  std::optional<std::stop_callback<std::function<void()>>> on_stop;

  // Used only by the engine.
  std::uint64_t id = 0;
  std::uint64_t request = 0;  // answers to earlier requests are ignored
  std::uint64_t rank = 0;     // key among the waiters of the Backstop; 0: not waiting
  int failures = 0;
  std::string trouble;  // the last transient error, for the message
  TimerId deadline_timer = TimerId::none;
  TimerId pause_timer = TimerId::none;
  WatchId predecessor_watch = WatchId::none;
};

}  // namespace baton::internal
