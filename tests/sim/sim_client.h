// A simulated process: the real Engine with a real session, on virtual time.
#pragma once

#include "common/client/engine.h"
#include "seeded_session.h"
#include "sim_store.h"

#include <memory>
#include <string>

namespace baton::sim {

// Receives the events that the checkers need.
class Witness {
 public:
  virtual ~Witness() = default;
  virtual void granted(int client, const std::shared_ptr<internal::Hold>& hold) = 0;
  virtual void announced_lost(int client, const std::shared_ptr<internal::Hold>& hold) = 0;
};

class SimClient final : public internal::EngineHost, public internal::Backend {
 public:
  SimClient(World& world, Witness& witness, int number, SimStore& store, const Weather& weather,
            std::chrono::milliseconds timeout);
  ~SimClient() override;  // a crash: the process ends without a message to the store

  internal::Engine& engine() { return *engine_; }
  SimLoop& loop_sim() { return *loop_; }
  const std::shared_ptr<Life>& life() const { return life_; }
  int number() const { return number_; }
  void pause(bool suspend, Nanos span);
  bool paused() const { return life_->paused; }
  // Whether the process believes that it holds the lock: hold.valid(), if no seeded bug changes it.
  bool believes_in(const internal::Hold& hold) const;

 private:
  // Backend
  internal::Loop& loop() noexcept override { return *loop_; }
  void open(internal::SessionListener& listener,
            internal::Answer<std::unique_ptr<internal::Session>> answer) override;
  void stop() noexcept override {}
  std::string where() const override { return "sim"; }
  // EngineHost
  std::weak_ptr<internal::HoldKeeper> keeper() override { return {}; }
  void hold_granted(const std::shared_ptr<internal::Hold>& hold) override;
  void hold_lost(const std::shared_ptr<internal::Hold>& hold) override;
  void on_hold_closed(const std::shared_ptr<internal::Hold>&) override {}
  void metric(const MetricEvent&, const internal::LockName*) override {}
  void watch_deadline(const std::shared_ptr<internal::Hold>& hold);
  void deadline_passed(const std::shared_ptr<internal::Hold>& hold);
  void announce_loss(const std::shared_ptr<internal::Hold>& hold);

  World& world_;
  Witness& witness_;
  SimStore& store_;
  const int number_;
  SeededNotes notes_;
  std::shared_ptr<Life> life_;
  std::shared_ptr<SimLoop> loop_;
  std::unique_ptr<SimPort> port_;
  std::unique_ptr<internal::Engine> engine_;
};

}  // namespace baton::sim
