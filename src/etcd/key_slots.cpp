#include "etcd/key_slots.h"

#include "common/base/check.h"

namespace baton::etcd {

KeySlot KeySlots::take(std::int64_t lease, const std::string& prefix) {
  Slots& slots = leases_[lease][prefix];
  if (slots.free.empty()) return KeySlot{slots.end++};
  return KeySlot{slots.free.extract(slots.free.begin()).value()};
}

void KeySlots::give_back(std::int64_t lease, const std::string& prefix, KeySlot slot) {
  const auto locks = leases_.find(lease);
  if (locks == leases_.end()) return;  // the lease has ended meanwhile
  const auto found = locks->second.find(prefix);
  if (found == locks->second.end()) return;
  Slots& slots = found->second;
  BATON_ASSERT(static_cast<std::uint64_t>(slot) < slots.end);
  slots.free.insert(static_cast<std::uint64_t>(slot));
  while (!slots.free.empty() && *slots.free.rbegin() + 1 == slots.end) {
    slots.free.erase(--slots.free.end());
    --slots.end;
  }
  if (slots.end != 0) return;
  locks->second.erase(found);
  if (locks->second.empty()) leases_.erase(locks);
}

std::size_t KeySlots::size() const noexcept {
  std::size_t locks = 0;
  for (const auto& [lease, prefixes] : leases_) locks += prefixes.size();
  return locks;
}

}  // namespace baton::etcd
