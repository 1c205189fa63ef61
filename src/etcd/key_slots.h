// KeySlots: the numbers at the end of this client's keys. A key is prefix, lease id and slot.
#pragma once

#include "etcd/namespace.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace baton::etcd {

// The number at the end of a key.
enum class KeySlot : std::uint64_t {};

// etcd keeps the name of a deleted key in its index until a compaction, and every read of a lock
// walks over these names. So slots are used again: under one lease, the keys of a lock need only as
// many names as exist at the same time. Two keys that used the same name have different create
// revisions.
class KeySlots {
 public:
  // The smallest free slot.
  KeySlot take(std::int64_t lease, const std::string& prefix);
  // No request about the ticket of this slot can have an effect on the key any more. A slot that is
  // never given back is not used again under this lease.
  void give_back(std::int64_t lease, const std::string& prefix, KeySlot slot);
  // The lease has ended, and no key is put under it any more.
  void forget(std::int64_t lease) { leases_.erase(lease); }

  std::size_t size() const noexcept;  // the locks of all leases with a slot in use

 private:
  struct Slots {
    std::uint64_t end = 0;         // the slots from here on were never used, or are free again
    std::set<std::uint64_t> free;  // below end
  };
  std::map<std::int64_t, std::map<std::string, Slots>> leases_;  // by lease and prefix
};

}  // namespace baton::etcd
