// A schedule of an attack: faults with their times, as numbers that the search can vary.
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
  stall,   // messages from server a to server b wait
  apart,   // zk: messages between a and b wait; etcd: as depose
  stop,    // server a is stopped
  mute,    // requests of the client do not get through
  deaf,    // answers to the client do not get through
  move,    // zk: the client goes to server a; etcd: a is elected
  pause,   // the client process is paused
  depose,  // etcd: server a is cut off from the others
  count_,
};

struct Gene {
  Blow blow = Blow::stall;
  int a = 0;
  int b = 0;
  double at = 0;    // start, in session timeouts
  double span = 0;  // duration, in session timeouts
};

struct Schedule {
  std::uint64_t seed = 1;  // of the random choices
  std::chrono::milliseconds timeout{2'000};
  int ticks = 2;  // number of ticks in one session timeout
  int sync_limit = 5;
  std::array<std::int64_t, 3> rates{};  // of the servers' clocks, in ppm
  std::int64_t rate = 0;                // of the client's clock
  int home = 1;                         // the first server of the client
  std::vector<Gene> genes;

  static Schedule random(World& chance);
  // A schedule that often gives small margins: messages from the leader stall, and just before this
  // stall ends, messages to the leader stall.
  static Schedule held_back(World& chance);
  Schedule varied(World& chance) const;
  std::string text() const;
};

// The result of one schedule: the smallest margin, and how often a margin was measured.
struct Margin {
  Nanos smallest = std::chrono::hours(1);
  std::uint64_t taken = 0;
};
Margin run_zk_schedule(const Schedule& schedule);
Margin run_etcd_schedule(const Schedule& schedule);

}  // namespace baton::sim
