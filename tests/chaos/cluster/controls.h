// Protections that a client process can switch off. Without one of them, the checkers must find
// violations.
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
  bool valid = false;     // "believe": the client does not ask valid() or lost_token()
  bool token = false;     // "own-tokens": the process counts its own grants as tokens
  bool queue = false;     // "jump": a client acts as the holder as soon as it has an entry
  bool release = false;   // "hoard": the holder of lock 0 keeps it
  bool closing = false;   // "leak": the process sometimes opens a client and never closes it
  bool finality = false;  // "revive": a lost lock is acquired again and used as the same hold
  bool check = false;     // "no-token-check": the registers accept every write
  bool tidiness = false;  // "litter": the driver holds a lock, and waits for it, after the run
  // True if the checkers find a violation only when holders are stopped.
  bool needs_pauses() const { return valid || finality || check; }
};

// Returns what the control switches off; nothing if `control` is empty. Throws
// std::invalid_argument for a name that is not listed above.
Missing missing_in(const std::string& control);

// Joins the queue like other clients, but acts as the holder as soon as its entry exists. Writes
// the records of that hold.
void jump_the_queue(Client& client, const std::string& name, const HistoryWriter& history,
                    std::uint64_t op, std::uint32_t lock, std::chrono::milliseconds time,
                    const std::stop_token& stop);

// Holds a lock, and waits for the same lock, until it is destroyed.
class Litter {
 public:
  Litter(const std::string& url, const std::string& name);

 private:
  Client client_;
  Lock lock_;
};

// Opens a client that is never closed.
void forget_a_client(const std::string& url);

}  // namespace baton::chaos
