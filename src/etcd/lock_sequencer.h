// LockSequencer: puts the joins, looks and removals of one client on one lock in order.
#pragma once

#include "etcd/namespace.h"

#include "common/base/loop.h"
#include "common/base/unique_function.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace baton::etcd {

// etcd serves the requests of one connection concurrently, so two requests under way may take
// effect in either order. Callers expect the order of their calls: the first caller gets the first
// ticket, and a lock that was released is not reported as taken. Therefore the joins of one lock
// are sent one after the other, and joins and peeks wait for the removals that were sent before
// them. Removals wait for nothing.
class LockSequencer {
 private:
  class Lanes;

 public:
  // A Turn or a Removal is a request that later requests wait for. It ends with end(). If it is
  // destroyed before, it ends after the current step of the loop, never inside the destructor: Link
  // drops the answers of a store that has changed, and must have told its session first, which then
  // calls close(). Otherwise the next join would go to the other store. May outlive the sequencer.
  class Turn {
   public:
    Turn(Turn&&) noexcept = default;
    Turn& operator=(Turn&&) = delete;
    ~Turn();
    // served: false if the store could not be reached. Then all waiting requests are rejected.
    void end(bool served);

   private:
    friend class LockSequencer;
    Turn(std::weak_ptr<Lanes> lanes, std::string prefix);
    std::weak_ptr<Lanes> lanes_;  // empty: it has ended, or was moved away
    std::string prefix_;
  };
  class Removal {
   public:
    Removal(Removal&&) noexcept = default;
    Removal& operator=(Removal&&) = delete;
    ~Removal();
    void end();

   private:
    friend class LockSequencer;
    Removal(std::weak_ptr<Lanes> lanes, std::string prefix, std::uint64_t id);
    std::weak_ptr<Lanes> lanes_;  // as in Turn
    std::string prefix_;
    std::uint64_t id_;
  };

  // May be called inside join() and peek(). Without a turn, or with go == false, the request is
  // rejected: an earlier join could not reach the store. Otherwise it may be sent now.
  using JoinStart = UniqueFunction<void(std::optional<Turn> turn)>;
  using PeekStart = UniqueFunction<void(bool go)>;

  explicit LockSequencer(Loop& loop);
  ~LockSequencer();
  LockSequencer(const LockSequencer&) = delete;
  LockSequencer& operator=(const LockSequencer&) = delete;

  void join(const std::string& prefix, JoinStart start);
  // For a read that checks whether the lock is free. It has no end, as no request waits for it.
  void peek(const std::string& prefix, PeekStart start);
  Removal removing(const std::string& prefix);
  // Starts and rejects nothing from now on.
  void close();

  std::size_t size() const noexcept;  // the locks with a request under way or waiting

 private:
  std::shared_ptr<Lanes> lanes_;
};

}  // namespace baton::etcd
