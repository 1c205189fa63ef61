// Which store is behind memory:NAME in this process.
#pragma once

#include "common/base/clock.h"
#include "common/base/loop.h"
#include "memory/store.h"
#include "memory/transport.h"

#include <functional>
#include <memory>
#include <string>

namespace baton::memory {

// A store that clients can connect to.
struct NamedStore {
  std::shared_ptr<Store> store;
  std::shared_ptr<const Clock> clock;
  std::function<std::shared_ptr<Transport>(Loop&)> make_transport;
};

// The place of that name; a plain one is made if there is none, and goes with its last client.
std::shared_ptr<NamedStore> find_named_store(const std::string& name);

// Where the tokens of a new store begin: above those of every earlier store of this process.
std::uint64_t first_token();

// Puts a place of one's own there. False: the name is taken.
bool add_named_store(const std::string& name, const std::shared_ptr<NamedStore>& named);

}  // namespace baton::memory
