// OwnTickets: the tickets of this client that are not gone.
#pragma once

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
  // Changes the state of the ticket, and forgets a ticket that is gone.
  void apply(const OwnTicketPtr& ticket, TicketEvent event);
  // Whether the client still needs this ticket.
  bool wanted(const OwnTicketPtr& ticket) const;
  std::set<std::string_view> keys_of(std::int64_t lease) const;

 private:
  Leases& leases_;
  std::unordered_map<Nonce, OwnTicketPtr> tickets_;
};

}  // namespace baton::etcd
