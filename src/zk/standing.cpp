#include "zk/standing.h"

#include <optional>

namespace baton::zk {

Result<Standing> standing_of(std::string_view root, const OwnTicket& ticket,
                             const Listing& listing) {
  const auto directory = [&] { return lock_directory(root, ticket.name.text()); };
  if (listing.status == Status::no_node) return Standing{};
  if (listing.status != Status::ok) {
    return call_error(listing.status, listing.code, "list " + directory());
  }
  if (is_exhausted(ticket.sequence)) {
    return Error(Errc::store_error,
                 "the directory " + directory() +
                     " has used its last sequence number (2147483647), so the order of its entries "
                     "is lost and no client can acquire this lock. Remove the directory when it is "
                     "empty; the server removes a container a minute or two after its last entry");
  }
  Standing result;
  const auto position = position_of(listing.queue, ticket.sequence, ticket.node);
  if (!position) return result;
  result.token = ticket.token;
  if (position->predecessor != nullptr) {
    const auto& before = *position->predecessor;
    result.view.omitted_ahead = position->ahead - 1;
    result.view.tickets.push_back({rank_of(before.sequence, false), before.name, std::nullopt});
  }
  result.view.tickets.push_back({rank_of(ticket.sequence, true), ticket.node, ticket.nonce});
  return result;
}

}  // namespace baton::zk
