#include "file/clients.h"

#include <algorithm>

namespace baton::file {

bool Clients::alive(ClientId id) {
  if (is_own(id)) return true;
  if (std::find(living_.begin(), living_.end(), id) != living_.end()) return true;
  const auto key = static_cast<std::uint64_t>(id);
  if (dead_.contains(key)) return false;
  if (test_liveness(store_.clients(), 'c', id) != Alive::no) {
    living_.push_back(id);
    return true;
  }
  if (dead_.size() > 4096) dead_.clear();  // only a cache: the clients are tested again
  dead_.insert(key);
  return false;
}

}  // namespace baton::file
