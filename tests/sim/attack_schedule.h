// A schedule of an attack: what happens when, as numbers that can be varied.
#pragma once

#include "sim_world.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace baton::sim {

enum class Blow {
  stall,   // from server a to server b
  apart,   // servers a and b, both ways
  stop,    // server a
  mute,    // the client's requests
  deaf,    // the client's answers
  move,    // the client goes to server a
  pause,   // the client is stopped
  depose,  // etcd: server a loses the others
  count_,
};

struct Gene {
  Blow blow = Blow::stall;
  int a = 0;
  int b = 0;
  double at = 0;    // in session timeouts
  double span = 0;  // likewise
};

struct Schedule {
  std::uint64_t seed = 1;  // of what is left to chance
  std::chrono::milliseconds timeout{2'000};
  int ticks = 2;  // in one session timeout
  int sync_limit = 5;
  std::array<std::int64_t, 3> rates{};  // of the servers' clocks
  std::int64_t rate = 0;                // of the client's
  int home = 1;                         // the server the client begins at
  std::vector<Gene> genes;

  static Schedule random(World& chance);
  // One that was seen to hurt: a stall from the leader, and before it ends a cut back to it.
  static Schedule held_back(World& chance);
  Schedule varied(World& chance) const;
  std::string text() const;
};

// Runs one; the smallest margin, and how often there was one to take.
struct Margin {
  Nanos smallest = std::chrono::hours(1);
  std::uint64_t taken = 0;
};
Margin run_zk_schedule(const Schedule& schedule);
Margin run_etcd_schedule(const Schedule& schedule);

}  // namespace baton::sim
