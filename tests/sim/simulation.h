// One simulated run: clients, actors, faults, checkers. The seed decides everything.
#pragma once

#include "sim_client.h"
#include "sim_world.h"

#include <cstdint>
#include <map>
#include <memory>
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

Outcome run_seed(std::uint64_t seed, bool keep_trace);

class Simulation final : public Witness {
 public:
  Simulation(std::uint64_t seed, bool keep_trace);
  ~Simulation() override;
  Outcome run();

 private:
  struct Slot;   // a place for a client, which may crash and come back
  struct Actor;  // somebody in a client who wants locks
  class Sink;
  struct Grant {
    int client;
    internal::LockName lock;
    std::shared_ptr<internal::Hold> hold;
    bool was_invalid = false;
    Time invalid_since{};
    bool announced = false;
  };

  // simulation.cpp: the course of a run
  void start_client(Slot& slot);
  void crash_client(Slot& slot);
  void think(const std::shared_ptr<Actor>& actor);
  void acquire(const std::shared_ptr<Actor>& actor);
  void acquired(const std::shared_ptr<Actor>& actor, const std::shared_ptr<internal::Hold>& hold);
  void release(const std::shared_ptr<Actor>& actor, const std::shared_ptr<internal::Hold>& hold);
  void nemesis();
  void strike(Slot& slot);
  void heal();
  void schedule_expiry();
  void run_until(Time until);

  // checkers.cpp
  void granted(int client, const std::shared_ptr<internal::Hold>& hold) override;
  void announced_lost(int client, const std::shared_ptr<internal::Hold>& hold) override;
  void check_all();
  void check_end();
  void fail(const std::string& what);
  bool client_paused(int client) const;

  World world_;
  SimClock store_clock_;
  std::shared_ptr<internal::MemoryStore> store_;
  std::chrono::milliseconds timeout_{};
  std::vector<internal::LockName> locks_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::set<int> faults_on_;  // which kinds this seed draws from
  Nanos hold_most_{};
  bool healed_ = false;
  int next_client_ = 1;
  int pending_ = 0;
  Time expiry_scheduled_ = internal::kNever;

  std::vector<Grant> grants_;
  std::map<internal::LockName, std::uint64_t> last_token_;
  std::set<std::uint64_t> evicted_;  // tokens
  Outcome outcome_;
};

}  // namespace baton::sim
