// Mutant: the seeded bugs of the simulator that no interface can carry (tests/sim/bugs.h has all).
// For test builds only: in every other build mutant() is a constant false and costs nothing.
#pragma once

namespace baton::internal {

enum class Mutant {
  none,
  deadline_from_answer,  // a lease counts from the arrival of the answer, not from the request
  contract_rule_alone,   // zk: the deadline lacks its third term
};

#ifdef BATON_MUTANTS
extern Mutant active_mutant;  // set before a run, read on the strand
inline bool mutant(Mutant m) noexcept { return active_mutant == m; }
#else
constexpr bool mutant(Mutant) noexcept { return false; }
#endif

}  // namespace baton::internal
