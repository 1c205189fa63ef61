// OwnTicket: a ticket of this client, from the first request about it until it is certainly gone.
// Its state says what may be at the server, and whether the ticket was withdrawn. Every change of
// state is an event of the table in next_state(); tests/unit/zk_own_ticket_test.cpp checks it.
#pragma once

#include "common/seam/session.h"
#include "zk/namespace.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::zk {

enum class TicketState {
  creating,            // the create waits or was sent
  making_parents,      // the create found no directory, which is being created
  cancelling_create,   // withdrawn in creating, after the create was sent
  cancelling_parents,  // withdrawn in making_parents
  in_doubt,            // the answer to the create was lost
  // Withdrawn in doubt. A removal searches for the node first, also after a removal that failed: a
  // list without the node is the only proof that the create was not committed.
  searching,
  there,     // the node and its name are known
  removing,  // withdrawn, and the name is known: a removal needs no search
  gone,      // no node, and none will be created
};

enum class TicketEvent {
  withdraw,         // the client withdraws the ticket
  withdraw_unsent,  // the same, and the create was not sent and never will be
  create_ok,
  create_lost,       // no answer
  create_no_parent,  // the directory does not exist
  create_refused,    // any other error
  parents_made,
  parents_failed,
  // A join after a lost answer has searched for the node.
  rejoin_absent,
  rejoin_adopted,   // found, and it belongs to this session
  withdraw_absent,  // a removal has searched, and found no node
  removed,          // the server has removed the node, or has no such node
};

// The state after an event; nullopt: the event cannot happen in this state.
constexpr std::optional<TicketState> next_state(TicketState state, TicketEvent event) noexcept {
  using S = TicketState;
  using E = TicketEvent;
  switch (event) {
    case E::withdraw:
      switch (state) {
        case S::creating:
          return S::cancelling_create;
        case S::making_parents:
          return S::cancelling_parents;
        case S::in_doubt:
          return S::searching;
        case S::there:
          return S::removing;
        case S::gone:
          return std::nullopt;
        default:
          return state;  // withdrawn before
      }
    case E::withdraw_unsent:
      return state == S::creating ? std::optional(S::gone) : std::nullopt;
    case E::create_ok:
      if (state == S::creating) return S::there;
      if (state == S::cancelling_create) return S::removing;
      return std::nullopt;
    case E::create_lost:
      if (state == S::creating) return S::in_doubt;
      if (state == S::cancelling_create) return S::searching;
      return std::nullopt;
    case E::create_no_parent:
      if (state == S::creating) return S::making_parents;
      if (state == S::cancelling_create) return S::gone;
      return std::nullopt;
    case E::create_refused:
      if (state == S::creating || state == S::cancelling_create) return S::gone;
      return std::nullopt;
    case E::parents_made:
      if (state == S::making_parents) return S::creating;
      if (state == S::cancelling_parents) return S::gone;
      return std::nullopt;
    case E::parents_failed:
      if (state == S::making_parents || state == S::cancelling_parents) return S::gone;
      return std::nullopt;
    case E::rejoin_absent:  // only a ticket that was not withdrawn may be created again
      if (state == S::in_doubt) return S::creating;
      if (state == S::searching || state == S::gone) return state;
      return std::nullopt;
    case E::rejoin_adopted:
      if (state == S::in_doubt) return S::there;
      if (state == S::searching) return S::removing;
      if (state == S::gone) return S::gone;
      return std::nullopt;
    case E::withdraw_absent:  // removing: a rejoin adopted the node while the withdrawal searched
    case E::removed:          // gone: a ticket may be withdrawn twice
      if (state == S::searching || state == S::removing || state == S::gone) return S::gone;
      return std::nullopt;
  }
  return std::nullopt;
}

// The name of the node is known, so the ticket can be found in a list.
constexpr bool is_present(TicketState state) noexcept {
  return state == TicketState::there || state == TicketState::removing;
}

class OwnTicket {
 public:
  OwnTicket(LockName lock, Nonce ours, std::string entry)
      : name(std::move(lock)), nonce(ours), id(std::move(entry)) {}

  TicketState state() const noexcept { return state_; }
  // An event that cannot happen changes nothing.
  void on(TicketEvent event) noexcept { state_ = next_state(state_, event).value_or(state_); }

  const LockName name;
  const Nonce nonce;
  const std::string id;
  std::string node;  // the child's name, once known
  std::int64_t sequence = 0;
  std::uint64_t token = 0;
  std::uint64_t create_request = 0;
  bool removal_in_doubt = false;  // the answer to a removal was lost
  // Withdrawals in cancelling_create and cancelling_parents, which wait for the answer.
  std::vector<Answer<WithdrawResult>> withdrawals;

 private:
  TicketState state_ = TicketState::creating;
};
using OwnTicketPtr = std::shared_ptr<OwnTicket>;

}  // namespace baton::zk
