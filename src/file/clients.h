// Clients: what one session knows of the clients of a store.
#pragma once

#include "file/liveness.h"

#include <cstdint>
#include <unordered_set>
#include <vector>

namespace baton::file {

class Clients {
 public:
  // own: nobody for one who only sweeps.
  Clients(const StoreDir& store, ClientId own) : store_(store), own_(own) {}

  ClientId own() const noexcept { return own_; }
  bool is_own(ClientId id) const noexcept { return id == own_; }

  // Own ones live without asking. What cannot be tested counts as living: waiting is safe. Each
  // client is tested once per look: a queue of thousands may belong to three of them.
  bool alive(ClientId id);
  void new_look() noexcept { living_.clear(); }
  // False: nobody hears it. The ear is not the heart: a client without a bell may live.
  bool ring(ClientId id, std::uint64_t hash) {
    return ring_bell(store_.clients(), id, hash) != Rung::dead;
  }
  std::string label(ClientId id) const { return read_label(store_.clients(), id); }

 private:
  const StoreDir& store_;
  const ClientId own_;
  std::vector<ClientId> living_;            // in this look
  std::unordered_set<std::uint64_t> dead_;  // death is final; saves a test for each of its records
};

}  // namespace baton::file
