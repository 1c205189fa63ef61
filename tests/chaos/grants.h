// Asynchronous acquires, and a record of the order of their grants.
#pragma once

#include "support/eventually.h"

#include <baton/baton.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace baton::chaos {

// Resident memory of this process in bytes.
inline long resident_bytes() {
  long pages = 0;
  long resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

// Pauses between two looks, because a look at thousands of entries is work for the client that
// serves it.
template <class Predicate>
::testing::AssertionResult in_time(std::string_view what, Predicate predicate) {
  return test::eventually_with(what, test::kLong, predicate,
                               [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
}

// An asynchronous acquire, and its lock after the grant.
class Waiter {
 public:
  explicit Waiter(DistributedMutex mutex) {
    mutex.acquire_async({}, [state = state_](Result<Lock> r) {
      if (!r) return;  // its client was closed
      const std::lock_guard guard(state->mutex);
      state->lock = std::move(r).value();
      state->granted = true;
    });
  }
  bool granted() const {
    const std::lock_guard guard(state_->mutex);
    return state_->granted;
  }
  void release() { state_->lock.release(); }

 private:
  struct State {
    std::mutex mutex;
    Lock lock;
    bool granted = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Records the grants of a lock. Each lock is released at once, except the grant that keep() names.
class Grants {
 public:
  void add(Result<Lock> r) {
    std::optional<Lock> released;  // destroyed after the mutex is unlocked
    const std::lock_guard guard(mutex_);
    if (!r) {
      errors_.push_back(r.error().what());
      return;
    }
    if (!r->valid()) errors_.push_back("a grant that is not valid");
    tokens_.push_back(r->token());
    (tokens_.size() == keep_ ? kept_ : released) = std::move(r).value();
  }
  // The grant with this number (1: the first) keeps the lock until let_go().
  void keep(std::size_t number) {
    const std::lock_guard guard(mutex_);
    keep_ = number;
  }
  void let_go() {
    std::optional<Lock> released;
    const std::lock_guard guard(mutex_);
    keep_ = 0;
    released.swap(kept_);
  }
  std::vector<std::uint64_t> tokens() const {
    const std::lock_guard guard(mutex_);
    return tokens_;
  }
  std::size_t size() const {
    const std::lock_guard guard(mutex_);
    return tokens_.size() + errors_.size();
  }
  std::vector<std::string> errors() const {
    const std::lock_guard guard(mutex_);
    return errors_;
  }

  // All grants came in the order of `line`.
  void expect_in_order(const std::vector<std::uint64_t>& line) const {
    EXPECT_EQ(errors(), std::vector<std::string>{});
    const auto granted = tokens();
    EXPECT_TRUE(std::is_sorted(granted.begin(), granted.end(), std::less_equal<>()))
        << "tokens do not grow";
    EXPECT_EQ(granted, line) << "not in the order of their entries";
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> tokens_;
  std::vector<std::string> errors_;
  std::size_t keep_ = 0;  // 0: none
  std::optional<Lock> kept_;
};

// The tokens of the entries in the queue, in order.
inline std::vector<std::uint64_t> line_of(Client& client, const std::string& name) {
  std::vector<std::uint64_t> tokens;
  for (const auto& entry : client.inspect(name).entries) tokens.push_back(entry.token);
  return tokens;
}

}  // namespace baton::chaos
