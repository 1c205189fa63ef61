#include "simulation.h"

#include "bugs.h"
#include "common/base/check.h"
#include "common/base/jitter.h"
#include "simulation_parts.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace baton::sim {

using namespace std::chrono_literals;
using internal::Attempt;
using internal::Hold;

namespace {
std::unique_ptr<SimStore> make_store(StoreKind kind, StoreParts parts) {
#ifdef BATON_WITH_ZK
  if (kind == StoreKind::zk) return make_zk_store(std::move(parts));
#endif
#ifdef BATON_WITH_ETCD
  if (kind == StoreKind::etcd) return make_etcd_store(std::move(parts));
#endif
  if (kind != StoreKind::memory) std::abort();  // this build does not contain the store
  return make_memory_store(std::move(parts));
}
}  // namespace

Simulation::Simulation(std::uint64_t seed, const Wish& wish) : world_(seed) {
  if (wish.keep_trace) world_.keep_trace();
  internal::next_jitter_seed = 1;
  timeout_ = std::chrono::milliseconds(world_.pick(1'000, 8'000));
  // etcd measures leases in whole seconds.
  if (wish.store == StoreKind::etcd) timeout_ = std::chrono::seconds(world_.pick(1, 6));
  hold_most_ = timeout_ / static_cast<int>(world_.pick(1, 8));
  // Swarm testing: each seed uses its own subset of the kinds of faults.
  for (int f = 0; f < kFaultKinds; ++f) {
    if (world_.chance(0.5)) faults_on_.insert(f);
  }
  for (std::uint64_t i = world_.pick(1, 2); i > 0; --i) {
    locks_.push_back(internal::parse_lock_name("lock" + std::to_string(i)).value());
  }
  auto quirks = Quirks::draw(world_, wish.store == StoreKind::zk     ? "zk_"
                                     : wish.store == StoreKind::etcd ? "etcd_"
                                                                     : "none");
  if (wish.quirks) quirks = *wish.quirks;
  world_.note("quirks: " + quirks.text());
  StoreParts parts{world_, locks_, timeout_, quirks};
  store_ = make_store(wish.store, std::move(parts));
  rough_ = world_.chance(0.5);
  may_refuse_ = quirks.on(Quirk::zk_seq_sticky);
  watches_are_lost_ = quirks.on(Quirk::etcd_watch_lost) || quirks.on(Quirk::etcd_future_revision) ||
                      quirks.on(Quirk::zk_lagging_reads);
  for (std::uint64_t i = world_.pick(2, 5); i > 0; --i) {
    slots_.push_back(std::make_unique<Slot>());
    Weather& weather = slots_.back()->weather;
    weather.latest = timeout_ * 2;
    if (rough_) {
      weather.lose_request = world_.chance(0.5) ? 0.05 : 0;
      weather.lose_answer = world_.chance(0.5) ? 0.05 : 0;
      weather.lose_news = world_.chance(0.5) ? 0.2 : 0;
      weather.late = world_.chance(0.5) ? 0.03 : 0;
      weather.twice = world_.chance(0.5) ? 0.05 : 0;
      weather.reorder = world_.chance(0.5) ? 0.2 : 0;
      weather.stop_after_beat = world_.chance(0.3) ? 0.05 : 0;
    }
    slots_.back()->usual = weather;
  }
}

Simulation::~Simulation() = default;

// ---- clients and actors

void Simulation::start_client(Slot& slot) {
  slot.client =
      std::make_unique<SimClient>(world_, *this, next_client_++, *store_, slot.weather, timeout_);
  world_.note("client " + std::to_string(slot.client->number()) + " starts");
  for (std::uint64_t i = world_.pick(1, 3); i > 0; --i) {
    auto actor = std::make_shared<Actor>();
    actor->client = slot.client.get();
    actor->life = slot.client->life();
    think(actor);
  }
}

void Simulation::crash_client(Slot& slot) {
  world_.note("client " + std::to_string(slot.client->number()) + " crashes");
  // A crashed process holds no locks. Its grants end here, without an announcement.
  std::erase_if(grants_, [&](const Grant& g) { return g.client == slot.client->number(); });
  slot.client.reset();
  pending_ -= std::exchange(slot.pending, 0);
  world_.after(world_.span(0ms, timeout_), [this, &slot] {
    if (!healed_ && slot.client == nullptr) start_client(slot);
  });
}

void Simulation::think(const std::shared_ptr<Actor>& actor) {
  if (healed_) return;
  world_.after(world_.span(0ms, hold_most_), [this, actor] {
    if (!actor->life->alive || healed_) return;
    actor->client->loop_sim().arrive([this, actor] { acquire(actor); });
  });
}

void Simulation::acquire(const std::shared_ptr<Actor>& actor) {
  if (healed_) return;
  Slot& slot = slot_of(slots_, actor->client);
  const auto& lock = locks_[world_.pick(0, locks_.size() - 1)];
  const auto kind = world_.pick(0, 99);
  const bool once = kind < 15;
  const auto due = std::make_shared<Time>(internal::kNever);
  const auto sink = std::make_shared<Sink>(
      [this, actor, &slot, due, pauses = actor->life->pauses](Result<std::shared_ptr<Hold>> r) {
        --slot.pending;
        --pending_;
        // C10: a call with a timeout ends in time, with any faults of the network and the servers.
        const Time now = actor->client->loop_sim().now();
        if (now > *due && now - *due > 50ms && actor->life->pauses == pauses) {
          fail("C10 client " + std::to_string(actor->client->number()) + " was answered too late");
        }
        if (world_.chance(0.03)) {
          think(actor);
          return false;  // the caller does not take the result
        }
        if (r) {
          acquired(actor, *r);
        } else {
          world_.note("client " + std::to_string(actor->client->number()) +
                      " not had: " + internal::make_errc_text(r.error()));
          think(actor);
        }
        return true;
      });
  auto attempt = std::make_shared<Attempt>(lock, once, sink);
  auto& loop = actor->client->loop_sim();
  attempt->started = loop.now();
  if (once) {
    attempt->deadline = loop.now() + timeout_;
    attempt->late = Errc::connection_failed;
  } else if (kind < 40) {
    attempt->deadline = loop.now() + world_.span(1ms, timeout_ * 2);
  }
  *due = attempt->deadline;
  ++slot.pending;
  ++pending_;
  world_.note("client " + std::to_string(actor->client->number()) + " wants " + lock.text() +
              (once ? " at once" : ""));
  actor->client->engine().start(attempt);
  if (world_.chance(0.15)) {
    world_.after(world_.span(0ms, timeout_), [actor, attempt] {
      if (!actor->life->alive) return;
      actor->client->loop_sim().arrive(
          [actor, attempt] { actor->client->engine().give_up(attempt, Errc::cancelled); });
    });
  }
}

void Simulation::acquired(const std::shared_ptr<Actor>& actor, const std::shared_ptr<Hold>& hold) {
  const auto until = world_.span(0ms, world_.chance(0.05) ? Nanos(timeout_ * 2) : hold_most_);
  if (world_.chance(0.1)) {
    world_.after(until / 2, [actor, hold] {
      if (!actor->life->alive) return;
      actor->client->loop_sim().arrive(
          [actor, hold] { actor->client->engine().verify(hold, [](Result<bool>) {}); });
    });
  }
  world_.after(until, [this, actor, hold] {
    if (!actor->life->alive) return;
    actor->client->loop_sim().arrive([this, actor, hold] { release(actor, hold); });
  });
}

void Simulation::release(const std::shared_ptr<Actor>& actor, const std::shared_ptr<Hold>& hold) {
  if (hold->become_released()) {
    world_.note("client " + std::to_string(actor->client->number()) + " releases " +
                hold->name().text() + " " + std::to_string(hold->token()));
    actor->client->engine().retire_hold(hold, nullptr);
  }
  think(actor);
}

// ---- the run

void Simulation::run_until(Time until) {
  while (outcome_.failure.empty() && world_.step(until)) check_all();
}

Outcome Simulation::run() {
  // A broken invariant fails the run. With a seeded bug it does not fail the run, because the
  // checkers must find that bug on their own.
  static Simulation* running = nullptr;
  running = this;
  const auto before = internal::set_check_handler([](const internal::BrokenInvariant& broken) {
    if (active_bug != Bug::none) return;
    running->fail(std::string("broken invariant at ") + broken.file + ":" +
                  std::to_string(broken.line) + ": " + broken.condition);
  });
  const Time began = world_.now();
  for (auto& slot : slots_) start_client(*slot);
  world_.after(world_.span(0ms, timeout_), [this] { nemesis(); });
  run_until(began + timeout_ * static_cast<int>(world_.pick(6, 16)));
  heal();
  // Every waiter must be served within this time: paused processes run again, dead sessions end,
  // periodic looks replace lost events, and each holder keeps its lock for a while.
  const auto patience = timeout_ * 8 + 30s + store_->grace() * 2 + 20 * (hold_most_ * 2 + 1s);
  const Time latest = world_.now() + patience;
  while (outcome_.failure.empty() && world_.step(latest)) {
    check_all();
    if (pending_ == 0 && nobody_in_line() && world_.now() > began + timeout_) break;
  }
  // A request sent before heal() may still arrive (2 T). A session that it opened must end (1 T).
  if (outcome_.failure.empty()) run_until(world_.now() + timeout_ * 5 + store_->grace());
  if (outcome_.failure.empty()) calm_round(false);
  if (outcome_.failure.empty()) calm_round(true);
  if (outcome_.failure.empty()) rollback_scene();
  if (outcome_.failure.empty()) check_end();
  outcome_.hash = world_.hash();
  outcome_.steps = world_.steps();
  outcome_.virtual_time = world_.now() - began;
  outcome_.trace = world_.trace();
  internal::set_check_handler(before);
  return outcome_;
}

bool Simulation::nobody_in_line() const {
  return std::all_of(locks_.begin(), locks_.end(),
                     [this](const auto& lock) { return store_->front(lock) == 0; });
}

Outcome run_seed(std::uint64_t seed, const Wish& wish) { return Simulation(seed, wish).run(); }

}  // namespace baton::sim
