// A simulated process: the real Engine over a real MemorySession, on virtual time, with a wire that
// loses, delays and doubles.
#pragma once

#include "common/engine.h"
#include "memory/memory_session.h"
#include "memory/memory_store.h"
#include "memory/wire.h"
#include "sim_world.h"

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace baton::sim {

// How bad the network is for one client.
struct Weather {
  double lose_request = 0;
  double lose_answer = 0;
  double lose_news = 0;
  double late = 0;   // much later than usual, up to `latest`
  double twice = 0;  // a request is carried out twice
  double reorder = 0;
  double stop_after_beat = 0;  // stopped in the moment after a heartbeat was sent
  Nanos latest{};
  bool up = true;    // requests get through
  bool down = true;  // answers get through
};

// One life of a process: events meant for an earlier life are void.
struct Life {
  bool alive = true;
  bool paused = false;
  std::deque<Task> waiting;  // what comes in while it is paused
};

class SimLoop final : public internal::Loop {
 public:
  SimLoop(World& world, std::shared_ptr<Life> life, std::int64_t ppm)
      : world_(world), life_(std::move(life)), clock_(world, ppm) {}

  const internal::Clock& clock() const noexcept override { return clock_; }
  SimClock& sim_clock() { return clock_; }
  void defer(Task task) override { deferred_.push_back(std::move(task)); }
  internal::TimerId at(Time when, Task task) override;
  void cancel(internal::TimerId id) override { timers_.erase(id); }
  void post(Task task) override;
  void run(Task task) override { post(std::move(task)); }

  // Something reaches the process: now, or when it runs again.
  void arrive(Task task);
  void enter(Task task);  // one step, and what it deferred
  void resume();
  // The process is gone, and with it all it had in mind: tasks refer to what owns them.
  void clear() {
    life_->waiting.clear();
    deferred_.clear();
    timers_.clear();
  }

 private:
  void fire(internal::TimerId id, Time when);

  World& world_;
  std::shared_ptr<Life> life_;
  SimClock clock_;
  std::deque<Task> deferred_;
  std::uint64_t next_timer_ = 1;
  std::unordered_map<internal::TimerId, Task> timers_;
};

class SimWire final : public internal::Wire {
 public:
  SimWire(World& world, std::shared_ptr<SimLoop> loop, std::shared_ptr<Life> life,
          const Weather& weather, std::function<void()> store_touched)
      : world_(world),
        loop_(std::move(loop)),
        life_(std::move(life)),
        weather_(weather),
        store_touched_(std::move(store_touched)) {}
  void on_beat(std::function<void()> f) { on_beat_ = std::move(f); }
  void request(internal::Traffic kind, Task at_store) override;
  void answer(internal::Traffic kind, Task at_client) override;
  void news(Task at_client) override;
  bool lossy() const noexcept override { return true; }

 private:
  Nanos delay();
  void to_client(Task task);

  World& world_;
  std::shared_ptr<SimLoop> loop_;
  std::shared_ptr<Life> life_;
  const Weather& weather_;
  std::function<void()> store_touched_;
  std::function<void()> on_beat_;
  Time last_request_{};
  Time last_answer_{};
};

// What the checkers hear of.
class Witness {
 public:
  virtual ~Witness() = default;
  virtual void granted(int client, const std::shared_ptr<internal::Hold>& hold) = 0;
  virtual void announced_lost(int client, const std::shared_ptr<internal::Hold>& hold) = 0;
};

class SimClient final : public internal::EngineHost, public internal::Backend {
 public:
  SimClient(World& world, Witness& witness, int number,
            std::shared_ptr<internal::MemoryStore> store, const internal::Clock& store_clock,
            const Weather& weather, std::chrono::milliseconds timeout,
            std::function<void()> store_touched);
  ~SimClient() override;  // a crash: nobody is told

  internal::Engine& engine() { return *engine_; }
  SimLoop& loop_sim() { return *loop_; }
  const std::shared_ptr<Life>& life() const { return life_; }
  int number() const { return number_; }
  void pause(bool suspend, Nanos span);
  bool paused() const { return life_->paused; }

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
  void hold_released(const std::shared_ptr<internal::Hold>&) override {}
  void metric(const MetricEvent&, const internal::LockName*) override {}
  void watch_deadline(const std::shared_ptr<internal::Hold>& hold);

  World& world_;
  Witness& witness_;
  const int number_;
  std::shared_ptr<Life> life_;
  std::shared_ptr<SimLoop> loop_;
  std::shared_ptr<SimWire> wire_;
  std::shared_ptr<internal::MemoryStore> store_;
  const internal::Clock& store_clock_;
  const std::chrono::milliseconds timeout_;
  std::unique_ptr<internal::Engine> engine_;
};

}  // namespace baton::sim
