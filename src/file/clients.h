// Clients: tells one session which clients of the store live, and wakes them.
#pragma once

#include "file/liveness.h"

#include <cstdint>
#include <unordered_set>
#include <vector>

namespace baton::file {

class Clients {
 public:
  // own: ClientId{} if the caller only sweeps and is no client itself.
  Clients(const StoreDir& store, ClientId own) : store_(store), own_(own) {}

  ClientId own() const noexcept { return own_; }
  bool is_own(ClientId id) const noexcept { return id == own_; }

  // The own client lives without a test. A client that cannot be tested counts as living, because
  // waiting is safe. Each client is tested at most once per look: thousands of tickets in a queue
  // may belong to three clients.
  bool alive(ClientId id);
  void new_look() noexcept { living_.clear(); }
  // False: no process has the client's bell open. The client may still live: only its liveness file
  // decides that, so test alive() before treating it as dead.
  bool ring(ClientId id, std::uint64_t hash) {
    return ring_bell(store_.clients(), id, hash) != Rung::dead;
  }
  std::string label(ClientId id) const { return read_label(store_.clients(), id); }

 private:
  const StoreDir& store_;
  const ClientId own_;
  std::vector<ClientId> living_;            // in this look
  std::unordered_set<std::uint64_t> dead_;  // death is final: no second test is needed
};

}  // namespace baton::file
