// Searches for a schedule in which a hold is still valid when the store may already have granted
// the lock to another client. It tests the deadline rules of zk:// and etcd://.
#pragma once

#include "simulation.h"

#include <cstdint>
#include <string>

namespace baton::sim {

struct AttackPlan {
  StoreKind store = StoreKind::zk;
  std::uint64_t seed = 1;
  std::uint64_t count = 2'000;  // how many schedules are tried
  bool stop_at_violation = false;
  bool tell = false;
};
struct AttackResult {
  // The smallest time found between the end of valid() and the earliest end of the session or lease
  // at the store. Zero or less: the deadline rule is broken.
  double margin_ms = 0;
  std::uint64_t tried = 0;
  std::uint64_t heartbeats = 0;  // how often a deadline was compared
  std::string schedule;          // the schedule with that margin
};
AttackResult attack(const AttackPlan& plan);

}  // namespace baton::sim
