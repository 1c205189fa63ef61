// A thread that acquires locks, works while it holds them, releases them, and records all of it.
#pragma once

#include "chaos/cluster/controls.h"
#include "chaos/cluster/history.h"
#include "chaos/cluster/register.h"

#include <baton/baton.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

namespace baton::chaos {

struct WorkPlan {
  std::string url;
  std::uint32_t client = 1;
  int locks = 4;
  int threads = 2;
  std::uint64_t seed = 1;
  std::string directory;  // of the histories and of the registers
  std::chrono::milliseconds session{2'000};
  Missing missing;  // nothing, except in a control
};

// Limit for connecting, and for one attempt to acquire.
inline constexpr std::chrono::milliseconds kConnectTime{5'000};

std::string lock_name(std::uint32_t lock);

// What all threads of a client process share.
struct Workplace {
  const WorkPlan& plan;
  Client& client;
  const HistoryWriter& history;
  std::vector<ProtectedRegister> registers;  // indexed by lock
  std::atomic<std::uint64_t> ops{0};
  std::atomic<std::uint64_t> own_tokens{0};
};

// The work of one thread: acquires of all kinds and holds of different lengths, until it is
// stopped.
class Contender {
 public:
  Contender(Workplace& place, std::uint64_t seed) : place_(place), random_(seed) {}
  void run(const std::stop_token& stop);

 private:
  class Holding;  // one hold
  struct Way {
    enum class Kind { wait, cancel, attempt, async } kind;
    std::optional<std::chrono::milliseconds> timeout;
  };

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  void once(const std::stop_token& stop);
  Way choose();
  Result<Lock> acquire(DistributedMutex& mutex, const Way& way, const std::stop_token& stop);
  Result<Lock> acquire_and_cancel(DistributedMutex& mutex, const std::stop_token& stop);
  std::chrono::milliseconds hold_time();

  Workplace& place_;
  std::mt19937_64 random_;
};

}  // namespace baton::chaos
