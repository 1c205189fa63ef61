// Which store is behind memory:NAME in this process.
#pragma once

#include "common/base/clock.h"
#include "common/base/loop.h"
#include "memory/store.h"
#include "memory/wire.h"

#include <functional>
#include <memory>
#include <string>

namespace baton::internal {

// A store that clients can connect to.
struct MemoryPlace {
  std::shared_ptr<MemoryStore> store;
  std::shared_ptr<const Clock> clock;
  std::function<std::shared_ptr<Wire>(Loop&)> make_wire;
};

// The place of that name; a plain one is made if there is none, and goes with its last client.
std::shared_ptr<MemoryPlace> find_memory_place(const std::string& name);

// Where the tokens of a new store begin: above those of every earlier store of this process.
std::uint64_t first_memory_token();

// Puts a place of one's own there. False: the name is taken.
bool add_memory_place(const std::string& name, const std::shared_ptr<MemoryPlace>& place);

}  // namespace baton::internal
