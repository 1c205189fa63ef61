// The seeded bugs. The simulator activates a single bug and must detect it.
//
// Most of them lie in the simulator: in a session between the engine and the real session
// (seeded_session.h), in the simulated networks and clocks, or in what the checkers see of a
// client. A bug that no interface of src can carry is a branch in src, see common/base/mutant.h.
#pragma once

namespace baton::sim {

enum class Bug {
  none,
  deadline_from_answer,  // a lease counts from the arrival of the answer, not from the request
  monotonic_clock,       // a clock that stops while the machine is suspended
  blind_rejoin,          // a join whose answer was lost is sent again under a new nonce
  adopt_old_ticket,      // a new session takes over the ticket of the previous session
  check_then_watch,      // a watch misses a ticket that went before the watch was set
  gone_means_held,       // a waiter is granted when its predecessor goes, without a look
  no_own_check,          // a waiter is granted although its own ticket is gone
  no_release_retry,      // a withdraw whose answer was lost is not retried
  cancel_leaves_ticket,  // an attempt that ends does not withdraw its ticket
  shared_nonce,          // two acquires of one client share a ticket
  token_is_position,     // the token restarts with the queue
  late_join_lands,       // the ticket of an abandoned join appears after its withdraw
  revive_lost,           // a late answer extends a lease that has run out
  lost_ticket_stays,     // a lost hold leaves its ticket in the queue
  grant_without_lease,   // grants although the lease has run out
  wall_clock,            // a clock that an operator can set
  loss_timer_on_io,      // a thread that waits for the network announces losses
  ping_is_proof,         // zk: an answer of a single server, without the leader, is a heartbeat
  contract_rule_alone,   // zk: the deadline lacks its third term
  find_without_sync,     // zk: a create without an answer is searched on a server that lags behind
  ties_by_name,          // zk: tickets with equal numbers are ordered by name
  herd,                  // zk: a waiter watches the head of the queue, not its predecessor
  compaction_is_gone,    // etcd: a watch cancelled for compaction counts as a deletion
  rollback_ignored,      // etcd: a store that was set back in time is accepted
  stray_txn_stays,       // etcd: the outcome of an abandoned transaction is not checked
  valid_after_release,   // a hold stays valid after its release
  refused_watch_waits,   // etcd: a watch that was refused for its auth token is waited on
  no_backstop,           // waiters and holders never look without an event of a watch
  no_own_watch,          // waiters and holders do not watch their own tickets
  count_,
};

extern Bug active_bug;
inline bool seeded(Bug bug) noexcept { return active_bug == bug; }
void activate(Bug bug);

}  // namespace baton::sim
