#include "etcd/own_tickets.h"

namespace baton::etcd {

OwnTicketPtr OwnTickets::find(Nonce nonce) const {
  const auto known = tickets_.find(nonce);
  return known == tickets_.end() ? nullptr : known->second;
}

void OwnTickets::apply(const OwnTicketPtr& ticket, TicketEvent event) {
  ticket->on(event);
  if (ticket->state() != TicketState::gone) return;
  if (tickets_.erase(ticket->nonce) > 0 && ticket->lease != 0) leases_.key_gone(ticket->lease);
}

bool OwnTickets::wanted(const OwnTicketPtr& ticket) const {
  return find(ticket->nonce) == ticket && !is_withdrawn(ticket->state());
}

std::set<std::string_view> OwnTickets::keys_of(std::int64_t lease) const {
  std::set<std::string_view> keys;
  for (const auto& [nonce, ticket] : tickets_) {
    if (ticket->lease == lease) keys.insert(ticket->key);
  }
  return keys;
}

}  // namespace baton::etcd
