// PendingGrants: records granted locks whose handlers have not started yet.
#pragma once

#include "common/base/clock.h"
#include "common/base/mutex.h"

#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace baton::internal {

// Thread-safe. Other clients cannot get these locks, so the log must show when handlers do not
// start.
class PendingGrants : public std::enable_shared_from_this<PendingGrants> {
 public:
  struct Oldest {
    std::string name;
    Time since;
    std::size_t count;  // of all pending grants
  };
  // The grant is pending while its Entry lives. Moves with the task that will call the handler.
  class Entry {
   public:
    Entry(std::shared_ptr<PendingGrants> all, std::list<std::pair<std::string, Time>>::iterator at)
        : all_(std::move(all)), at_(at) {}
    Entry(Entry&& other) noexcept = default;
    Entry& operator=(Entry&&) = delete;
    ~Entry() { started(); }
    void started() noexcept {
      if (const auto all = std::exchange(all_, nullptr)) {
        const MutexLock guard(all->mutex_);
        all->waiting_.erase(at_);
      }
    }

   private:
    std::shared_ptr<PendingGrants> all_;
    std::list<std::pair<std::string, Time>>::iterator at_;
  };

  Entry add(std::string name) {
    const MutexLock guard(mutex_);
    waiting_.emplace_back(std::move(name), BootClock::now());
    return {shared_from_this(), std::prev(waiting_.end())};
  }
  std::optional<Oldest> oldest() const {
    const MutexLock guard(mutex_);
    if (waiting_.empty()) return std::nullopt;
    const auto& [name, since] = waiting_.front();
    return Oldest{name, since, waiting_.size()};
  }

 private:
  mutable Mutex mutex_;
  std::list<std::pair<std::string, Time>> waiting_ BATON_GUARDED_BY(mutex_);  // in order of `since`
};

}  // namespace baton::internal
