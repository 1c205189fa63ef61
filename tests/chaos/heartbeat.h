// Heartbeat: records when the machine did not run this process on time.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

namespace baton::chaos {

// From when a thread should have run until it did.
struct Pause {
  std::chrono::nanoseconds from{};
  std::chrono::nanoseconds to{};
};

// One thread on each processor that sleeps a millisecond at a time. If it wakes more than a
// millisecond late, this process did not run there on time. A check of delays subtracts exactly
// these pauses.
class Heartbeat {
 public:
  Heartbeat();

  // Ends the threads. Returns all pauses, sorted, with those that touch merged.
  std::vector<Pause> stop();

 private:
  void beat(const std::stop_token& stop, std::size_t processor);

  std::mutex mutex_;
  std::vector<Pause> pauses_;
  std::vector<std::jthread> threads_;  // last member: joined first
};

// How much of [from, to] lies in pauses.
std::chrono::nanoseconds paused_between(const std::vector<Pause>& pauses,
                                        std::chrono::nanoseconds from, std::chrono::nanoseconds to);

}  // namespace baton::chaos
