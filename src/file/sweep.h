// Sweep: removes what crashed clients have left behind.
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

// Removes the queues that have no ticket of a living client, then the files of dead clients. The
// order matters: the files of dead clients are the sign that queues must be swept. If there is no
// file of a dead client and another client lives, does nothing, because living clients remove their
// own queues. Stops at the deadline; the next sweep continues. Never throws, because no lock
// depends on a sweep.
void sweep(const StoreDir& store, Clients& clients, const Clock& clock, Time deadline) noexcept;

}  // namespace baton::file
