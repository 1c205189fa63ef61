// The cycles of baton_cycles: all the ways in which an acquire can end.
#pragma once

#include <baton/baton.h>

#include <cstddef>
#include <string>

namespace baton::chaos {

// Ways to leave something behind, for the controls.
enum class Leak { none, memory, entry, descriptor };

class Rounds {
 public:
  // Cycles of one round.
  static constexpr int kCycles = 20;

  Rounds(Client& worker, Client& other, Leak leak) : worker_(worker), other_(other), leak_(leak) {}

  // Twenty acquires on one lock: had, cancelled at once, cancelled in line, timed out, refused,
  // destroyed while it waited, handed over, re-entered. Throws std::runtime_error if one ends
  // otherwise than it must. When it returns, all have ended; what they leave to be withdrawn
  // may still be under way.
  void run(int number);

  // A client that closes while one of its acquires waits and another one holds.
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
