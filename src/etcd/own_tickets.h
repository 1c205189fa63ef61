// OwnTickets: the tickets of this client that are not gone.
#pragma once

#include "etcd/key_slots.h"
#include "etcd/leases.h"
#include "etcd/own_ticket.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string_view>
#include <unordered_map>

namespace baton::etcd {

class OwnTickets {
 public:
  explicit OwnTickets(Leases& leases) : leases_(leases) {}

  OwnTicketPtr find(Nonce nonce) const;  // null: unknown, or gone
  void add(const OwnTicketPtr& ticket) { tickets_.emplace(ticket->nonce, ticket); }
  // Gives the ticket a key under this lease. No other ticket has it, and no late request concerns
  // it.
  void give_key(const OwnTicketPtr& ticket, std::int64_t lease);
  // Another program has a key of this name: the ticket needs another one. The slot stays in use.
  void key_taken(const OwnTicketPtr& ticket);
  // Changes the state of the ticket, and forgets a ticket that is gone.
  void apply(const OwnTicketPtr& ticket, TicketEvent event);
  // Whether the client still needs this ticket.
  bool wanted(const OwnTicketPtr& ticket) const;
  std::set<std::string_view> keys_of(std::int64_t lease) const;
  // Whether a ticket has this key under this lease.
  bool have(std::int64_t lease, std::string_view key) const;
  void lease_revoked(std::int64_t lease) { slots_.forget(lease); }

 private:
  Leases& leases_;
  KeySlots slots_;
  std::unordered_map<Nonce, OwnTicketPtr> tickets_;
};

}  // namespace baton::etcd
