// Reads and extends BATON_HELD: the locks that ancestors of this process hold by baton run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baton::cli {

struct HeldLock {
  std::string name;
  std::uint64_t token = 0;
  std::string store;
  bool operator==(const HeldLock&) const = default;
};

// The same text for all URLs of one store. The path of a file:// URL is resolved.
std::string store_identity(std::string_view url);

// The tokens with which ancestors acquired this lock, from BATON_HELD. They may have released it: a
// process that CMD left behind keeps its environment.
std::vector<std::uint64_t> held_tokens(std::string_view name, std::string_view store);

// Adds a lock to BATON_HELD of this process. Each lock is one line: "name token store".
void add_held(const HeldLock& lock);

}  // namespace baton::cli
