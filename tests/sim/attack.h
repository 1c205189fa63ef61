// A search for a schedule in which a hold is valid although the store may have given it away: the
// deadline rules of zk:// and etcd://, attacked.
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
  // The smallest time found from the end of valid() to the earliest end of the session or lease at
  // the store. Not above zero: the rule is broken.
  double margin_ms = 0;
  std::uint64_t tried = 0;
  std::uint64_t heartbeats = 0;  // moments at which a deadline was compared
  std::string schedule;          // of that margin
};
AttackResult attack(const AttackPlan& plan);

}  // namespace baton::sim
