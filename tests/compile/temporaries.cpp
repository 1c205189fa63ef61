// The wrong code converts a temporary lock, or a temporary object that may contain a lock, to bool.
// The temporary releases the lock before the program uses the answer. The right code stands next to
// each wrong one.
// refused with: operator bool.* deleted|deleted function .*operator bool|'bool' uses deleted
#include <baton/baton.h>

#include <chrono>
#include <optional>
#include <utility>

using namespace std::chrono_literals;

void work();
const baton::Lock a_const_lock();

void try_acquire(baton::DistributedMutex& mutex) {
#if WRONG == 1
  if (mutex.try_acquire()) work();
#else
  if (auto lock = mutex.try_acquire()) work();
  if (auto lock = mutex.try_acquire(); lock) work();
  if (baton::TryLock lock = mutex.try_acquire({.timeout = 1s}); lock && lock->valid()) work();
  if (std::optional<baton::Lock> lock = mutex.try_acquire()) work();
  while (auto lock = mutex.try_acquire()) work();
#endif
}

void try_acquire_for(baton::DistributedMutex& mutex) {
#if WRONG == 2
  if (!mutex.try_acquire_for(1s)) return;
#else
  auto lock = mutex.try_acquire_for(1s);
  if (!lock) return;
  const bool held = static_cast<bool>(lock);
  if (held) lock.reset();
#endif
  work();
}

void try_acquire_and(baton::DistributedMutex& mutex, bool wanted) {
#if WRONG == 3
  if (wanted && mutex.try_acquire()) work();
#else
  if (auto lock = wanted ? mutex.try_acquire() : baton::TryLock()) work();
  // This only checks whether the lock was free. It does not keep the lock.
  if (wanted && mutex.try_acquire().has_value()) work();
#endif
}

void try_acquire_moved(baton::DistributedMutex& mutex) {
  auto lock = mutex.try_acquire();
#if WRONG == 4
  if (std::move(lock)) work();
#else
  if (!lock) return;
  baton::Lock mine = *std::move(lock);
  if (mine) work();
#endif
}

bool try_acquire_cast(baton::DistributedMutex& mutex) {
#if WRONG == 5
  return static_cast<bool>(mutex.try_acquire());
#else
  return mutex.try_acquire().has_value();
#endif
}

// The lock inside the temporary is a temporary too.
void try_acquire_inside(baton::DistributedMutex& mutex) {
#if WRONG == 6
  if (*mutex.try_acquire()) work();
#else
  if (baton::Lock lock = mutex.try_acquire().value()) work();
#endif
}

void acquire_for(baton::DistributedMutex& mutex) {
#if WRONG == 7
  if (mutex.acquire_for(1s)) work();
#else
  if (baton::Lock lock = mutex.acquire_for(1s)) work();
  if (auto lock = mutex.acquire(); lock) work();
  // This only checks. It does not keep the lock.
  if (mutex.acquire_for(1s).valid()) work();
#endif
}

void acquire_const() {
#if WRONG == 8
  if (a_const_lock()) work();
#else
  if (const auto lock = a_const_lock()) work();
#endif
}

void acquire_result(baton::DistributedMutex& mutex) {
#if WRONG == 9
  if (mutex.acquire_result()) work();
#else
  if (auto result = mutex.acquire_result()) work();
  if (auto result = mutex.acquire_result({.timeout = 1s}); result && *result) work();
  auto result = mutex.acquire_result();
  if (!result.has_value()) return;
  baton::Lock lock = std::move(result).value();
  if (lock) work();
#endif
}

void acquire_result_inside(baton::DistributedMutex& mutex) {
#if WRONG == 10
  if (mutex.acquire_result().value()) work();
#else
  if (baton::Lock lock = mutex.acquire_result().value()) work();
#endif
}

void try_connect() {
#if WRONG == 11
  if (baton::Client::try_connect("memory:")) work();
#else
  if (auto client = baton::Client::try_connect("memory:")) work();
#endif
}

void handler(baton::DistributedMutex& mutex) {
  mutex.acquire_async({}, [](baton::Result<baton::Lock> result) {
#if WRONG == 12
    if (std::move(result)) work();
#else
    if (result) work();
#endif
  });
}
