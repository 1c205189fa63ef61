// Ledger: the records of the processes of a kill stress, in shared memory that outlives each of
// them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace baton::chaos {

// Nanoseconds on the boot clock, which all processes share.
using Stamp = std::atomic<std::int64_t>;
static_assert(Stamp::is_always_lock_free);

// One hold in shared memory; check() converts it to a record of tests/history. All fields except
// `end` and `seen` are written before `begin`. So a record with a `begin` is complete, and a record
// without one belongs to a process that was killed before it was complete.
struct Hold {
  Stamp asked;                        // before the acquire
  Stamp begin;                        // after the grant
  Stamp seen;                         // the last moment at which the holder is known to have run
  Stamp end;                          // before the release; 0: killed while holding
  std::atomic<std::uint64_t> token;   // 0: none
  std::atomic<std::uint32_t> worker;  // serial number from 1; pids are reused
};

// An entry that the observer saw waiting in the queue.
struct Sighting {
  std::uint64_t token;
  std::int64_t at;  // read after the snapshot had arrived
};

class Ledger {
 public:
  explicit Ledger(std::size_t capacity);  // creates the memory; children inherit the descriptor
  explicit Ledger(int descriptor);        // maps the memory that the parent created
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  int descriptor() const noexcept { return descriptor_; }

  // The next free record. Throws std::length_error when the ledger is full: a hold without a record
  // would not be checked.
  Hold& new_hold();
  void add_sighting(Sighting sighting);  // only one thread may write sightings

  std::size_t holds() const noexcept;  // how many records are in use
  const Hold& hold(std::size_t i) const noexcept { return holds_[i]; }
  std::size_t sightings() const noexcept;
  const Sighting& sighting(std::size_t i) const noexcept { return sightings_[i]; }

  // The worker that holds the lock now, 0: none. It is a hint for choosing a victim, and the checks
  // do not use it.
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
