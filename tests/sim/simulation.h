// One simulated run with clients, actors, faults and checkers. The seed decides the whole run.
#pragma once

#include "sim_client.h"
#include "sim_world.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace baton::sim {

struct Outcome {
  std::string failure;  // empty: all checks held
  std::uint64_t hash = 0;
  std::uint64_t steps = 0;
  std::uint64_t grants = 0;
  std::uint64_t faults = 0;
  Nanos virtual_time{};
  std::vector<std::string> trace;
};

enum class StoreKind { memory, zk, etcd };
inline const char* store_name(StoreKind kind) {
  return kind == StoreKind::zk ? "zk" : kind == StoreKind::etcd ? "etcd" : "memory";
}
// Whether this build contains the store.
inline bool available(StoreKind kind) {
#ifndef BATON_WITH_ZK
  if (kind == StoreKind::zk) return false;
#endif
#ifndef BATON_WITH_ETCD
  if (kind == StoreKind::etcd) return false;
#endif
  return kind == StoreKind::memory || kind == StoreKind::zk || kind == StoreKind::etcd;
}

// The choices for a run that the seed does not make.
struct Wish {
  StoreKind store = StoreKind::memory;
  bool keep_trace = false;
  std::optional<Quirks> quirks{};
};
Outcome run_seed(std::uint64_t seed, const Wish& wish);

class Simulation final : public Witness {
 public:
  Simulation(std::uint64_t seed, const Wish& wish);
  ~Simulation() override;
  Outcome run();

 private:
  struct Slot;   // a place for one client, which may crash and start again
  struct Actor;  // a caller in a client, which acquires and releases locks
  class Sink;
  struct Grant {
    int client;
    internal::LockName lock;
    std::shared_ptr<internal::Hold> hold;
    std::uint64_t session = 0;
    Time broken_since{};
    bool was_invalid = false;
    Time invalid_since{};
    bool announced = false;
  };

  // simulation.cpp: the phases of a run. faults.cpp: nemesis(), strike() and heal().
  void start_client(Slot& slot);
  void crash_client(Slot& slot);
  void think(const std::shared_ptr<Actor>& actor);
  void acquire(const std::shared_ptr<Actor>& actor);
  void acquired(const std::shared_ptr<Actor>& actor, const std::shared_ptr<internal::Hold>& hold);
  void release(const std::shared_ptr<Actor>& actor, const std::shared_ptr<internal::Hold>& hold);
  void nemesis();
  void strike(Slot& slot);
  void heal();
  void run_until(Time until);
  bool nobody_in_line() const;

  // calm.cpp: the checks after the faults have ended
  void calm_round(bool judged);
  void calm_acquire(Slot& slot);
  void rollback_scene();

  // checkers.cpp
  void granted(int client, const std::shared_ptr<internal::Hold>& hold) override;
  void announced_lost(int client, const std::shared_ptr<internal::Hold>& hold) override;
  void check_all();
  void check_end();
  void check_rollback();
  bool calm(int client, Time since) const;
  void fail(const std::string& what);
  bool client_paused(int client) const;
  bool believed(const Grant& grant) const;

  World world_;
  std::unique_ptr<SimStore> store_;
  std::chrono::milliseconds timeout_{};
  std::vector<internal::LockName> locks_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::set<int> faults_on_;  // the kinds of faults of this seed
  Nanos hold_most_{};
  bool healed_ = false;
  int next_client_ = 1;
  int pending_ = 0;

  std::vector<Grant> grants_;
  std::map<internal::LockName, std::uint64_t> last_token_;
  std::set<std::uint64_t> evicted_;  // tokens
  std::set<std::uint64_t> ended_sessions_;
  std::optional<Time> rolled_back_;  // time of the rollback
  bool rough_ = false;               // the network loses or delays messages
  Time troubled_until_{};            // end of the server faults
  struct Calm {
    int asked = 0;
    int served = 0;
    Time released{};
    int slow = 0;
  } calm_;
  bool watches_are_lost_ = false;  // or late: an evicted holder may notice it late
  bool may_refuse_ = false;
  Outcome outcome_;
};

}  // namespace baton::sim
