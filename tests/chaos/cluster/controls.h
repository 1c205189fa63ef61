// Defences that a client process can do without, so that the checkers must object: who works like
// this finds what the others are protected from.
#pragma once

#include "chaos/cluster/history.h"

#include <baton/baton.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>

namespace baton::chaos {

struct Missing {
  bool valid = false;     // "believe": valid() and lost_token() are not asked
  bool token = false;     // "own-tokens": the process counts its grants itself
  bool queue = false;     // "jump": whoever has an entry believes it is its turn
  bool release = false;   // "hoard": who has lock 0 keeps it
  bool closing = false;   // "leak": a client is opened now and then, and forgotten
  bool finality = false;  // "revive": a lost lock is taken again, and taken for the same hold
  bool check = false;     // "no-token-check": the registers take every write
  bool tidiness = false;  // "litter": the driver holds a lock, and waits for it, when all is over
  // The others show without a fault.
  bool needs_pauses() const { return valid || finality || check; }
};

// Throws std::invalid_argument for a name that is not above. Empty: nothing is missing.
Missing missing_in(const std::string& control);

// Waits in line as all do, but believes as soon as its entry is there. Writes a whole hold.
void jump_the_queue(Client& client, const std::string& name, const HistoryWriter& history,
                    std::uint64_t op, std::uint32_t lock, std::chrono::milliseconds time,
                    const std::stop_token& stop);

// One who holds a lock while another waits for it, until it is destroyed.
class Litter {
 public:
  Litter(const std::string& url, const std::string& name);

 private:
  Client client_;
  Lock lock_;
};

// Opens a client that nobody closes.
void forget_a_client(const std::string& url);

}  // namespace baton::chaos
