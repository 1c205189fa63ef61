// The child processes of a kill stress.
#pragma once

#include "chaos/ledger.h"

#include <cstdint>
#include <string>

namespace baton::chaos {

// Acquires and releases the lock until it is told to stop, and records each hold. With an empty URL
// it takes no lock; this is the control.
void work(Ledger& ledger, std::uint32_t serial, const std::string& url);

// Reads the queue until it is told to stop, and records which entries were seen waiting, and when.
void observe(Ledger& ledger, const std::string& url);

}  // namespace baton::chaos
