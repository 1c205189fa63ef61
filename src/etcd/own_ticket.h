// OwnTicket: a ticket of this client, from the first request about it until it is certainly gone.
// Its state says what may be at the server, and whether the ticket was withdrawn. Every change of
// state is an event of the table in next_state(); tests/unit/etcd_own_ticket_test.cpp checks it.
#pragma once

#include "common/seam/session.h"
#include "etcd/key_slots.h"
#include "etcd/namespace.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::etcd {

// "late": a transaction whose answer was lost may still create the key, even after a removal.
enum class TicketState {
  queued,            // waits for its turn in LockSequencer, or for a key: no request was sent
  joining,           // the first transaction for its key waits or was sent
  in_doubt,          // the answer to a transaction was lost
  rejoining,         // the transaction is sent again
  present,           // the key and its create revision are known
  present_late,      // the same, but an earlier transaction may still take effect
  cancelling,        // withdrawn in joining
  cancelling_again,  // withdrawn in rejoining
  removing,          // withdrawn in present
  removing_late,     // withdrawn in present_late
  removing_unknown,  // withdrawn, and the create revision is not known
  gone,              // no key; after a late state, a late transaction may still create one
};

enum class TicketEvent {
  sent,           // the transaction is handed to the link
  turn_rejected,  // the store cannot be reached, so the transaction is not sent
  lease_failed,   // there is no lease to put the key under
  joined,         // the transaction was answered: the key exists
  join_lost,      // no answer, or a malformed one
  join_refused,   // the transaction had no effect
  key_taken,      // the first transaction found a key of this name: it is not ours
  withdraw,       // the client withdraws the ticket
  removed,        // the server has removed the key, or has no such key
};

// The state after an event; nullopt: the event cannot happen in this state.
constexpr std::optional<TicketState> next_state(TicketState state, TicketEvent event) noexcept {
  using S = TicketState;
  using E = TicketEvent;
  switch (event) {
    case E::sent:  // a ticket that was withdrawn is never sent
      if (state == S::queued) return S::joining;
      if (state == S::in_doubt) return S::rejoining;
      return std::nullopt;
    case E::turn_rejected:  // removing_unknown, gone: withdrawn while the join waited for its turn
      if (state == S::queued) return S::gone;
      if (state == S::in_doubt || state == S::removing_unknown || state == S::gone) return state;
      return std::nullopt;
    case E::lease_failed:  // gone: withdrawn while the join waited for a lease
      if (state == S::queued || state == S::gone) return S::gone;
      return std::nullopt;
    case E::joined:
      if (state == S::joining) return S::present;
      if (state == S::rejoining) return S::present_late;
      if (state == S::cancelling) return S::removing;
      if (state == S::cancelling_again) return S::removing_late;
      return std::nullopt;
    case E::join_lost:
      if (state == S::joining || state == S::rejoining) return S::in_doubt;
      if (state == S::cancelling || state == S::cancelling_again) return S::removing_unknown;
      return std::nullopt;
    case E::join_refused:  // says nothing about an earlier transaction whose answer was lost
      if (state == S::joining || state == S::cancelling) return S::gone;
      if (state == S::rejoining) return S::in_doubt;
      if (state == S::cancelling_again) return S::removing_unknown;
      return std::nullopt;
    case E::key_taken:  // the ticket gets another key
      if (state == S::joining) return S::queued;
      if (state == S::cancelling) return S::gone;
      return std::nullopt;
    case E::withdraw:
      switch (state) {
        case S::queued:
          return S::gone;
        case S::joining:
          return S::cancelling;
        case S::rejoining:
          return S::cancelling_again;
        case S::in_doubt:
          return S::removing_unknown;
        case S::present:
          return S::removing;
        case S::present_late:
          return S::removing_late;
        case S::gone:
          return std::nullopt;
        default:
          return state;  // withdrawn before
      }
    case E::removed:  // gone: a ticket may be withdrawn twice
      if (state == S::removing || state == S::removing_late || state == S::removing_unknown ||
          state == S::gone) {
        return S::gone;
      }
      return std::nullopt;
  }
  return std::nullopt;
}

// A transaction may be sent now.
constexpr bool may_send(TicketState state) noexcept {
  return next_state(state, TicketEvent::sent).has_value();
}

// The first transaction is under way: a key that it finds is not the ticket's own.
constexpr bool is_first_join(TicketState state) noexcept {
  return next_state(state, TicketEvent::key_taken).has_value();
}

// The client has withdrawn the ticket, or the ticket is gone.
constexpr bool is_withdrawn(TicketState state) noexcept {
  using S = TicketState;
  return state == S::cancelling || state == S::cancelling_again || state == S::removing ||
         state == S::removing_late || state == S::removing_unknown || state == S::gone;
}

// The key existed, and its create revision is known.
constexpr bool is_present(TicketState state) noexcept {
  using S = TicketState;
  return state == S::present || state == S::present_late || state == S::removing ||
         state == S::removing_late;
}

// A transaction whose answer was lost may create the key after the ticket was removed.
constexpr bool late_possible(TicketState state) noexcept {
  using S = TicketState;
  return state == S::in_doubt || state == S::rejoining || state == S::present_late ||
         state == S::cancelling_again || state == S::removing_late || state == S::removing_unknown;
}

// Shows any thread that the watch has reported the key as deleted.
class DeletionSign final : public TicketSign {
 public:
  bool evicted() const noexcept override { return gone_.load(std::memory_order_acquire); }
  void set() noexcept { gone_.store(true, std::memory_order_release); }

 private:
  std::atomic<bool> gone_{false};
};

class OwnTicket {
 public:
  OwnTicket(LockName lock, Nonce ours, std::string keys)
      : name(std::move(lock)), nonce(ours), prefix(std::move(keys)) {}

  TicketState state() const noexcept { return state_; }
  // An event that cannot happen changes nothing.
  void on(TicketEvent event) noexcept { state_ = next_state(state_, event).value_or(state_); }

  const LockName name;
  const Nonce nonce;
  const std::string prefix;  // of the keys of its lock
  std::string key;           // empty: it has no key yet
  std::int64_t lease = 0;
  KeySlot slot{};
  std::uint64_t token = 0;        // create revision
  std::int64_t seen = 0;          // the newest revision of a delivered read
  std::int64_t told = 0;          // the revision of the read that was last delivered
  std::int64_t gone_at = 0;       // the revision of the deletion that its watch reported; 0: none
  std::int64_t doubted_at = 0;    // the last gone_at for which an older read was discarded
  bool removal_in_doubt = false;  // the answer to a removal was lost
  // Withdrawals in cancelling and cancelling_again, which wait for the answer.
  std::vector<Answer<WithdrawResult>> withdrawals;
  std::shared_ptr<DeletionSign> sign;

 private:
  TicketState state_ = TicketState::queued;
};
using OwnTicketPtr = std::shared_ptr<OwnTicket>;

}  // namespace baton::etcd
