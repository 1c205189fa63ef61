// Finds and registers the stores of this process by the NAME of memory:NAME.
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

// The store of that name. If there is none, makes one with a direct transport; it is destroyed with
// its last client.
std::shared_ptr<NamedStore> find_named_store(const std::string& name);

// The tokens of a new store start above this number, which is above those of every earlier store of
// this process.
std::uint64_t first_token();

// Registers a store under that name. False: the name is taken.
bool add_named_store(const std::string& name, const std::shared_ptr<NamedStore>& named);

}  // namespace baton::memory
