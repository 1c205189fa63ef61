// What crashed clients leave behind, and who takes it away.
#pragma once

#include "common/base/clock.h"
#include "common/seam/ticket.h"
#include "file/clients.h"
#include "file/store_dir.h"

#include <chrono>
#include <functional>
#include <string_view>

namespace baton::file {

// Calls visit for the name of each lock that has a directory and begins with prefix, in no order,
// until it returns false. Returns whether it saw them all. Throws Error.
bool for_each_lock(const StoreDir& store, std::string_view prefix,
                   const std::function<bool(const LockName&)>& visit);

inline constexpr std::chrono::milliseconds kSweepTime{50};  // for one sweep

// Removes the queues in which nobody living stands, then the files of dead clients: in this order,
// because the files of the dead are the sign that there is something to sweep. Does nothing to the
// queues if there are no dead and others live: each of them tidies up after itself. Stops at the
// deadline; what is left is the next one's. Never throws: a sweep is a courtesy.
void sweep(const StoreDir& store, Clients& clients, const Clock& clock, Time deadline) noexcept;

}  // namespace baton::file
