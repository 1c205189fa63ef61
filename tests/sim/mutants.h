// The seeded bugs, and the store on which the simulation must find each of them.
#pragma once

#include "bugs.h"
#include "simulation.h"

#include <array>
#include <string_view>

namespace baton::sim {

struct SeededBug {
  const char* name;
  const char* number;   // in the test plan; "": not in the plan
  StoreKind store;      // where it must be found
  bool attack = false;  // found by attack(), not by running seeds
};

// In the order of the enum Bug.
inline constexpr std::array kSeededBugs = {
    SeededBug{"none", "", StoreKind::memory},
    SeededBug{"deadline_from_answer", "M1", StoreKind::memory},
    SeededBug{"monotonic_clock", "M2", StoreKind::memory},
    SeededBug{"blind_rejoin", "M5", StoreKind::memory},
    SeededBug{"adopt_old_ticket", "M7", StoreKind::memory},
    SeededBug{"check_then_watch", "M8", StoreKind::zk},
    SeededBug{"gone_means_held", "M9", StoreKind::memory},
    SeededBug{"no_own_check", "M11", StoreKind::memory},
    SeededBug{"no_release_retry", "M12", StoreKind::memory},
    SeededBug{"cancel_leaves_ticket", "M14", StoreKind::memory},
    SeededBug{"shared_nonce", "M15", StoreKind::memory},
    SeededBug{"token_is_position", "M17", StoreKind::memory},
    SeededBug{"late_join_lands", "M20", StoreKind::memory},
    SeededBug{"revive_lost", "", StoreKind::memory},
    SeededBug{"lost_ticket_stays", "", StoreKind::memory},
    SeededBug{"grant_without_lease", "", StoreKind::memory},
    SeededBug{"wall_clock", "M3", StoreKind::memory},
    SeededBug{"loss_timer_on_io", "M19", StoreKind::memory},
    SeededBug{"ping_is_proof", "M4", StoreKind::zk},
    SeededBug{"contract_rule_alone", "", StoreKind::zk, true},
    SeededBug{"find_without_sync", "M6", StoreKind::zk},
    SeededBug{"ties_by_name", "M16", StoreKind::zk},
    SeededBug{"herd", "M22", StoreKind::zk},
    SeededBug{"compaction_is_gone", "M10", StoreKind::etcd},
    SeededBug{"rollback_ignored", "M18", StoreKind::etcd},
    SeededBug{"stray_txn_stays", "M20", StoreKind::etcd},
    SeededBug{"valid_after_release", "M13", StoreKind::memory},
    SeededBug{"refused_watch_waits", "M21", StoreKind::etcd},
    SeededBug{"no_backstop", "", StoreKind::etcd},
    SeededBug{"no_own_watch", "", StoreKind::etcd},
};
static_assert(kSeededBugs.size() == static_cast<std::size_t>(Bug::count_));

bool activate(std::string_view name);  // false: there is no such bug
// Returns 0 if every seeded bug was found within 10,000 seeds or schedules. `only`: the name of a
// bug or of a store.
int hunt_mutants(std::string_view only = {});

}  // namespace baton::sim
