// Ledger: what the processes of a kill stress put on record, in memory that outlives each of them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace baton::chaos {

// Times are nanoseconds of the boot clock: one clock for all processes.
using Stamp = std::atomic<std::int64_t>;
static_assert(Stamp::is_always_lock_free);

// One hold in shared memory; check() makes a record of tests/history of it. All but `end` and
// `seen` are written before `begin`, so a record with a `begin` is whole; one without was never
// finished, because its process was killed.
struct Hold {
  Stamp asked;                        // before the acquire
  Stamp begin;                        // after the grant
  Stamp seen;                         // the last moment in which the holder is known to have run
  Stamp end;                          // before the release; 0: killed while holding
  std::atomic<std::uint64_t> token;   // 0: none
  std::atomic<std::uint32_t> worker;  // its serial number, from 1 on: pids come again
};

// An entry that somebody else saw waiting in the queue.
struct Sighting {
  std::uint64_t token;
  std::int64_t at;  // after the snapshot came
};

class Ledger {
 public:
  explicit Ledger(std::size_t capacity);  // makes it; the descriptor is inherited by children
  explicit Ledger(int descriptor);        // maps what the parent made
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  int descriptor() const noexcept { return descriptor_; }

  // The next free record. Throws std::length_error when the ledger is full: a hold that is not on
  // record is a hold that is not checked.
  Hold& new_hold();
  void add_sighting(Sighting sighting);  // one writer

  std::size_t holds() const noexcept;  // how many were begun
  const Hold& hold(std::size_t i) const noexcept { return holds_[i]; }
  std::size_t sightings() const noexcept;
  const Sighting& sighting(std::size_t i) const noexcept { return sightings_[i]; }

  // The worker that holds now, 0: nobody. A hint to aim by, never part of the verdict.
  std::atomic<std::uint32_t>& inside() noexcept { return header_->inside; }
  std::atomic<bool>& stop() noexcept { return header_->stop; }
  // Tokens for runs without a lock.
  std::uint64_t next_fake_token() noexcept { return ++header_->fake_token; }

 private:
  struct Header {
    std::uint64_t capacity;
    std::atomic<std::uint64_t> holds;
    std::atomic<std::uint64_t> sightings;
    std::atomic<std::uint64_t> fake_token;
    std::atomic<std::uint32_t> inside;
    std::atomic<bool> stop;
  };
  static std::size_t bytes(std::size_t capacity) noexcept;
  void map(std::size_t size);

  int descriptor_ = -1;
  void* memory_ = nullptr;
  std::size_t size_ = 0;
  Header* header_ = nullptr;
  Hold* holds_ = nullptr;
  Sighting* sightings_ = nullptr;
};

}  // namespace baton::chaos
