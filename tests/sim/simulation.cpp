#include "simulation.h"

#include "simulation_parts.h"

#include <algorithm>
#include <utility>

namespace baton::sim {

using namespace std::chrono_literals;
using internal::Attempt;
using internal::Hold;

namespace {
enum Fault { kStop, kSuspend, kCrash, kCut, kOneWay, kEvict, kEndSession, kStorm, kFaultKinds };
}

Simulation::Simulation(std::uint64_t seed, bool keep_trace)
    : world_(seed),
      store_clock_(world_, static_cast<std::int64_t>(world_.pick(0, 9'000)) - 4'500),
      store_(std::make_shared<internal::MemoryStore>(true)) {
  if (keep_trace) world_.keep_trace();
  timeout_ = std::chrono::milliseconds(world_.pick(1'000, 8'000));
  hold_most_ = timeout_ / static_cast<int>(world_.pick(1, 8));
  // Swarm: each seed draws its faults from a subset of its own.
  for (int f = 0; f < kFaultKinds; ++f) {
    if (world_.chance(0.5)) faults_on_.insert(f);
  }
  for (std::uint64_t i = world_.pick(1, 2); i > 0; --i) {
    locks_.push_back(internal::parse_lock_name("lock" + std::to_string(i)).value());
  }
  const bool rough = world_.chance(0.5);
  for (std::uint64_t i = world_.pick(2, 5); i > 0; --i) {
    slots_.push_back(std::make_unique<Slot>());
    Weather& weather = slots_.back()->weather;
    weather.latest = timeout_ * 2;
    if (rough) {
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
  slot.client = std::make_unique<SimClient>(world_, *this, next_client_++, store_, store_clock_,
                                            slot.weather, timeout_, [this] { schedule_expiry(); });
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
  // Whoever does not run holds nothing: its locks end here, unannounced.
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
  const auto sink = std::make_shared<Sink>([this, actor, &slot](Result<std::shared_ptr<Hold>> r) {
    --slot.pending;
    --pending_;
    if (world_.chance(0.03)) {
      think(actor);
      return false;  // the caller has left
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
  ++slot.pending;
  ++pending_;
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
    actor->client->engine().drop(hold, nullptr);
  }
  think(actor);
}

// ---- faults

void Simulation::nemesis() {
  if (healed_) return;
  Slot& slot = *slots_[world_.pick(0, slots_.size() - 1)];
  if (slot.client != nullptr && !faults_on_.empty()) strike(slot);
  world_.after(world_.span(timeout_ / 8, timeout_), [this] { nemesis(); });
}

void Simulation::strike(Slot& slot) {
  auto kind = faults_on_.begin();
  std::advance(kind, static_cast<std::ptrdiff_t>(world_.pick(0, faults_on_.size() - 1)));
  ++outcome_.faults;
  const std::string who = "client " + std::to_string(slot.client->number());
  switch (*kind) {
    case kStop:
    case kSuspend: {
      const auto span = world_.span(1ms, timeout_ * 3);
      world_.note(who + (*kind == kStop ? " is stopped" : " is suspended"));
      slot.client->pause(*kind == kSuspend, span);
      break;
    }
    case kCrash:
      crash_client(slot);
      break;
    case kCut:
    case kOneWay: {
      const bool requests = *kind == kCut || world_.chance(0.5);
      const bool answers = *kind == kCut || !requests;
      world_.note(who + " is cut off");
      slot.weather.up = !requests && slot.weather.up;
      slot.weather.down = !answers && slot.weather.down;
      world_.after(world_.span(1ms, timeout_ * 3),
                   [&slot] { slot.weather.up = slot.weather.down = true; });
      break;
    }
    case kEvict: {
      const auto& lock = locks_[world_.pick(0, locks_.size() - 1)];
      const auto entries = store_->inspect(lock).entries;
      if (entries.empty()) break;
      const auto& entry = entries[world_.pick(0, entries.size() - 1)];
      world_.note("evict " + entry.id);
      evicted_.insert(entry.token);
      store_->evict(lock, entry.id);
      break;
    }
    case kEndSession: {
      // As an operator, or a bug of the server: the promise of early loss does not cover it.
      const auto& lock = locks_[world_.pick(0, locks_.size() - 1)];
      const auto entries = store_->inspect(lock).entries;
      if (entries.empty()) break;
      const auto session = std::stoull(entries[world_.pick(0, entries.size() - 1)].id);
      world_.note("end session " + std::to_string(session));
      for (const auto& any : locks_) {
        for (const auto& entry : store_->inspect(any).entries) {
          if (std::stoull(entry.id) == session) evicted_.insert(entry.token);
        }
      }
      store_->end_session(internal::MemorySessionId{session});
      break;
    }
    case kStorm: {
      world_.note(who + " has a storm");
      slot.weather.late = 0.3;
      slot.weather.lose_answer = 0.2;
      slot.weather.lose_request = 0.2;
      world_.after(world_.span(timeout_ / 4, timeout_ * 2), [this, &slot] {
        if (healed_) return;
        slot.weather.late = slot.usual.late;
        slot.weather.lose_answer = slot.usual.lose_answer;
        slot.weather.lose_request = slot.usual.lose_request;
      });
      break;
    }
    default:
      break;
  }
}

void Simulation::heal() {
  world_.note("healed");
  healed_ = true;
  for (auto& slot : slots_) slot->weather = Weather{};
}

void Simulation::schedule_expiry() {
  const Time due = store_->next_expiry();
  if (due == internal::kNever) return;
  // At least 10 us on: world_time() may be early by some microseconds.
  const Time when = std::max(store_clock_.world_time(due), world_.now() + 10us);
  if (when >= expiry_scheduled_) return;
  expiry_scheduled_ = when;
  world_.at(when, [this, when] {
    if (expiry_scheduled_ == when) expiry_scheduled_ = internal::kNever;
    store_->expire(store_clock_.now());
    schedule_expiry();
  });
}

// ---- the run

void Simulation::run_until(Time until) {
  while (outcome_.failure.empty() && world_.step(until)) check_all();
}

Outcome Simulation::run() {
  const Time began = world_.now();
  for (auto& slot : slots_) start_client(*slot);
  world_.after(world_.span(0ms, timeout_), [this] { nemesis(); });
  run_until(began + timeout_ * static_cast<int>(world_.pick(6, 20)));
  heal();
  // Whoever still waits is served: paused processes run again, dead sessions end, lost news are
  // made up for by the backstop, each holder keeps its lock for a while.
  const auto patience = timeout_ * 8 + 30s + 20 * (hold_most_ * 2 + 1s);
  const Time latest = world_.now() + patience;
  while (outcome_.failure.empty() && world_.step(latest)) {
    check_all();
    if (pending_ == 0 && store_->list("").empty() && world_.now() > began + timeout_) break;
  }
  // A request from before may still arrive (2 T), and a session it opened must die (1 T).
  if (outcome_.failure.empty()) run_until(world_.now() + timeout_ * 5);
  if (outcome_.failure.empty()) check_end();
  outcome_.hash = world_.hash();
  outcome_.steps = world_.steps();
  outcome_.virtual_time = world_.now() - began;
  outcome_.trace = world_.trace();
  return outcome_;
}

Outcome run_seed(std::uint64_t seed, bool keep_trace) { return Simulation(seed, keep_trace).run(); }

}  // namespace baton::sim
