// The child processes of a kill stress.
#pragma once

#include "chaos/ledger.h"

#include <cstdint>
#include <string>

namespace baton::chaos {

// Takes the lock and gives it back until it is told to stop, and puts each hold on record. Without
// a URL it takes no lock at all: the control.
void work(Ledger& ledger, std::uint32_t serial, const std::string& url);

// Looks at the queue until it is told to stop, and puts on record who was seen waiting, and when.
void observe(Ledger& ledger, const std::string& url);

}  // namespace baton::chaos
