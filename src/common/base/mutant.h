// Seeded bugs, for test builds only: the simulator switches one on and must catch it. In every
// other build this is a constant false and costs nothing.
#pragma once

namespace baton::internal {

enum class Mutant {
  none,
  deadline_from_answer,  // a lease counted from when the answer came, not from when it was asked
  monotonic_clock,       // a clock that stands still while the machine is suspended
  blind_rejoin,          // a join whose answer was lost is sent again under a new nonce
  adopt_old_ticket,      // a new session takes over the ticket of the one before
  check_then_watch,      // a watch that does not see a ticket which went before it was set
  gone_means_held,       // the predecessor went, so it is my turn: nobody looks
  no_own_check,          // grants although my own ticket is gone
  no_release_retry,      // a withdraw whose answer was lost is forgotten
  cancel_leaves_ticket,  // giving up withdraws nothing
  shared_nonce,          // two acquires of one client share a ticket
  token_is_position,     // the token restarts with the queue
  late_join_lands,       // a join that was given up appears after its withdraw
  revive_lost,           // a lease that ran out comes back with a late answer
  lost_ticket_stays,     // a lost hold leaves its ticket in the queue
  grant_without_lease,   // grants although the lease has run out
  wall_clock,            // a clock that somebody can set
  loss_timer_on_io,      // the loss is told by a thread that waits for the network
  ping_is_proof,         // zk: a heartbeat is whatever any server answers alone
  contract_rule_alone,   // zk: the deadline without its third term
  find_without_sync,     // zk: a lost create is looked for in what a late server knows
  ties_by_name,          // zk: equal numbers are put in order by name
  herd,                  // zk: watches the head of the queue, not the nearest before us
  compaction_is_gone,    // etcd: a watch cancelled for compaction counts as a deletion
  rollback_ignored,      // etcd: a store that was set back is believed
  stray_txn_stays,       // etcd: nobody looks after a transaction that was given up
  valid_after_release,   // the store lets the next one in while we still believe
  refused_watch_waits,   // etcd: a watch that was refused for its token is waited on
  no_backstop,           // nobody looks by itself: watches are believed to tell
  no_own_watch,          // nobody watches his own ticket
  count_,
};

#ifdef BATON_MUTANTS
extern Mutant active_mutant;  // set before a run, read on the strand
inline bool mutant(Mutant m) noexcept { return active_mutant == m; }
#else
constexpr bool mutant(Mutant) noexcept { return false; }
#endif

}  // namespace baton::internal
