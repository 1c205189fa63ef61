// BATON_HELD: the locks that the processes above this one hold by baton run.
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

// One text for one store, however its URL is written: a directory is resolved.
std::string store_identity(std::string_view url);

// From BATON_HELD: the tokens under which ancestors took this lock. They may have ended since: a
// process that CMD left behind keeps its environment.
std::vector<std::uint64_t> held_tokens(std::string_view name, std::string_view store);

// Adds one to BATON_HELD of this process. One lock a line: "name token store".
void add_held(const HeldLock& lock);

}  // namespace baton::cli
