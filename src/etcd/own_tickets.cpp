#include "etcd/own_tickets.h"

#include "etcd/path.h"

#include <algorithm>
#include <utility>

namespace baton::etcd {

OwnTicketPtr OwnTickets::find(Nonce nonce) const {
  const auto known = tickets_.find(nonce);
  return known == tickets_.end() ? nullptr : known->second;
}

void OwnTickets::give_key(const OwnTicketPtr& ticket, std::int64_t lease) {
  ticket->lease = lease;
  ticket->slot = slots_.take(lease, ticket->prefix);
  ticket->key = entry_key(ticket->prefix, lease, ticket->slot);
  leases_.key_added(lease);
}

void OwnTickets::key_taken(const OwnTicketPtr& ticket) {
  leases_.key_gone(std::exchange(ticket->lease, 0));
  ticket->key.clear();
  apply(ticket, TicketEvent::key_taken);
}

void OwnTickets::apply(const OwnTicketPtr& ticket, TicketEvent event) {
  const bool late = late_possible(ticket->state());
  ticket->on(event);
  if (ticket->state() != TicketState::gone || find(ticket->nonce) != ticket) return;
  tickets_.erase(ticket->nonce);
  if (ticket->lease == 0) return;
  // A late transaction would create the key of the next ticket that has this slot.
  if (!late) slots_.give_back(ticket->lease, ticket->prefix, ticket->slot);
  leases_.key_gone(ticket->lease);
}

bool OwnTickets::wanted(const OwnTicketPtr& ticket) const {
  return find(ticket->nonce) == ticket && !is_withdrawn(ticket->state());
}

bool OwnTickets::have(std::int64_t lease, std::string_view key) const {
  return std::any_of(tickets_.begin(), tickets_.end(), [&](const auto& each) {
    return each.second->lease == lease && each.second->key == key;
  });
}

std::set<std::string_view> OwnTickets::keys_of(std::int64_t lease) const {
  std::set<std::string_view> keys;
  for (const auto& [nonce, ticket] : tickets_) {
    if (ticket->lease == lease) keys.insert(ticket->key);
  }
  return keys;
}

}  // namespace baton::etcd
