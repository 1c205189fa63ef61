// The rounds of baton_cycles: acquires that end in every possible way.
#pragma once

#include <baton/baton.h>

#include <cstddef>
#include <string>

namespace baton::chaos {

// What a control leaves behind on purpose.
enum class Leak { none, memory, entry, descriptor };

class Rounds {
 public:
  // Acquires in one round.
  static constexpr int kCycles = 20;

  Rounds(Client& worker, Client& other, Leak leak) : worker_(worker), other_(other), leak_(leak) {}

  // Twenty acquires on one lock: granted, cancelled at once, cancelled in the queue, timed out,
  // refused, destroyed while waiting, handed over, re-entered. Throws std::runtime_error if an
  // acquire ends wrongly. When it returns, all acquires have ended, but withdrawals of their
  // tickets may still be under way.
  void run(int number);

  // A client closes while it holds a lock and one of its acquires waits for the same lock.
  void close_in_line(const std::string& url, const ClientOptions& options);

 private:
  void cancelled(DistributedMutex& mutex, const std::string& name);
  void timed_out(DistributedMutex& mutex);
  void refused(DistributedMutex& mutex);
  void destroyed(DistributedMutex& mutex);
  void handed_over(DistributedMutex& mutex, Lock hold);
  void re_entered(DistributedMutex& mutex);
  void leak_something(int number);

  Client& worker_;
  Client& other_;
  const Leak leak_;
};

}  // namespace baton::chaos
