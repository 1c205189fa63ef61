// standing_of(): where a ticket of this client stands in the list of its directory. Pure.
#pragma once

#include "zk/own_ticket.h"
#include "zk/lock_reads.h"

#include <string_view>

namespace baton::zk {

// root: "" or "/app". No tickets in the view: the ticket is not in the list.
Result<Standing> standing_of(std::string_view root, const OwnTicket& ticket,
                             const Listing& listing);

}  // namespace baton::zk
