// Heartbeat: notes when the machine did not run us.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

namespace baton::chaos {

// From when we should have run until we did.
struct Pause {
  std::chrono::nanoseconds from{};
  std::chrono::nanoseconds to{};
};

// One thread on each processor that sleeps a millisecond at a time. Whenever it wakes more than a
// millisecond late, nobody of ours ran there on time, and a check of delays forgives just that.
class Heartbeat {
 public:
  Heartbeat();

  // Stops, and tells all pauses: sorted, merged where they meet.
  std::vector<Pause> stop();

 private:
  void beat(const std::stop_token& stop, std::size_t processor);

  std::mutex mutex_;
  std::vector<Pause> pauses_;
  std::vector<std::jthread> threads_;  // last: joined first
};

// How much of [from, to] lies in pauses.
std::chrono::nanoseconds paused_between(const std::vector<Pause>& pauses,
                                        std::chrono::nanoseconds from, std::chrono::nanoseconds to);

}  // namespace baton::chaos
