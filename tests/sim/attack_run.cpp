// Runs one schedule of an attack against the real sessions.
#include "attack_schedule.h"
#include "common/base/jitter.h"
#include "common/seam/lock_name.h"
#include "sim_store.h"
#ifdef BATON_WITH_ZK
#include "sim_zk.h"
#endif
#ifdef BATON_WITH_ETCD
#include "sim_etcd.h"
#endif

#include <algorithm>
#include <utility>

namespace baton::sim {

using namespace std::chrono_literals;

namespace {

// A client that holds one ticket for as long as it can.
class Victim final : private internal::SessionListener {
 public:
  Victim(World& world, const Schedule& schedule)
      : world_(world),
        life_(std::make_shared<Life>()),
        loop_(std::make_shared<SimLoop>(world, life_, schedule.rate)) {}
  ~Victim() override {
    life_->alive = false;
    loop_->clear();
    session_.reset();
    port_.reset();
  }
  PortParts parts() {
    return {loop_, life_, &weather, 1, [] {}};
  }
  void enter(std::unique_ptr<SimPort> port) {
    port_ = std::move(port);
    loop_->enter([this] { open(); });
  }
  // The world time until which the client considers its lease valid. Empty: it has no valid lease.
  std::optional<Time> believes_until() const {
    if (session_ == nullptr) return std::nullopt;
    const auto lease = session_->lease();
    if (lease->ended() || lease->deadline() <= loop_->now()) return std::nullopt;
    return loop_->sim_clock().world_time(lease->deadline());
  }
  void pause(Nanos span) {
    if (std::exchange(life_->paused, true)) return;
    world_.after(span, [this, life = life_] {
      if (life->alive) loop_->resume();
    });
  }
  bool over() const { return over_; }
  Weather weather;

 private:
  void open() {
    port_->open(*this, [this](Result<std::unique_ptr<internal::Session>> made) {
      if (!made) {
        loop_->at(loop_->now() + 50ms, [this] { open(); });
        return;
      }
      session_ = std::move(*made);
      join();
    });
  }
  void join() {
    session_->join(internal::parse_lock_name("lock").value(), internal::Nonce{1},
                   [this](const Result<internal::Standing>& standing) {
                     if (standing || over_) return;
                     loop_->at(loop_->now() + 50ms, [this] {
                       if (!over_) join();
                     });
                   });
  }
  void session_ended(std::error_code, const std::string&) override { over_ = true; }
  void session_resumed() override {}

  World& world_;
  std::shared_ptr<Life> life_;
  std::shared_ptr<SimLoop> loop_;
  std::unique_ptr<SimPort> port_;
  std::unique_ptr<internal::Session> session_;
  bool over_ = false;
};

// Applies the faults that concern only the client: its network, and pauses of its process.
void strike_client(World& world, Victim& victim, const Gene& gene, Nanos span) {
  if (gene.blow == Blow::mute) {
    victim.weather.up = false;
    world.after(span, [&victim] { victim.weather.up = true; });
  } else if (gene.blow == Blow::deaf) {
    victim.weather.down = false;
    world.after(span, [&victim] { victim.weather.down = true; });
  } else if (gene.blow == Blow::pause) {
    victim.pause(span);
  }
}

Nanos of(std::chrono::milliseconds timeout, double share) {
  return Nanos(static_cast<std::int64_t>(static_cast<double>(Nanos(timeout).count()) * share));
}

template <class Strike, class Until>
Margin play(World& world, Victim& victim, const Schedule& schedule, Strike strike, Until until) {
  const Time began = world.now();
  double last = 2;
  for (const auto& gene : schedule.genes) {
    last = std::max(last, gene.at + std::min(gene.span, 2.0));
    world.at(began + of(schedule.timeout, gene.at), [&world, &victim, &schedule, gene, strike] {
      const Nanos span = of(schedule.timeout, gene.span);
      strike_client(world, victim, gene, span);
      strike(gene, span);
    });
  }
  Margin margin;
  const Time end = began + of(schedule.timeout, last + 1.5);
  while (world.step(end) && !victim.over()) {
    const auto belief = victim.believes_until();
    if (!belief) continue;
    const Time kept = until();
    if (kept == internal::kNever) continue;
    ++margin.taken;
    margin.smallest = std::min(margin.smallest, kept - *belief);
  }
  return margin;
}

}  // namespace

Margin run_zk_schedule([[maybe_unused]] const Schedule& schedule) {
#ifdef BATON_WITH_ZK
  internal::next_jitter_seed = 1;
  World world(schedule.seed);
  ZkEnsemble::Setup setup;
  setup.timeout = schedule.timeout;
  setup.tick = schedule.timeout / schedule.ticks;
  setup.sync_limit = schedule.sync_limit;
  setup.quirks.set(Quirk::zk_touch_table);
  setup.rates = schedule.rates;
  ZkEnsemble ensemble(world, setup);
  Victim victim(world, schedule);
  auto port = std::make_unique<ZkPort>(world, victim.parts(), ensemble);
  ZkPort* const lines = port.get();
  victim.enter(std::move(port));
  if (lines->newest() != nullptr) lines->newest()->go_to(schedule.home);
  const auto strike = [&](const Gene& gene, Nanos span) {
    switch (gene.blow) {
      case Blow::stall:
      case Blow::apart: {
        const bool both = gene.blow == Blow::apart;
        ensemble.stall(gene.a, gene.b, true);
        if (both) ensemble.stall(gene.b, gene.a, true);
        world.after(span, [&ensemble, gene, both] {
          ensemble.stall(gene.a, gene.b, false);
          if (both) ensemble.stall(gene.b, gene.a, false);
        });
        break;
      }
      case Blow::stop:
        if (ensemble.stopped(gene.a)) break;
        ensemble.stop(gene.a);
        world.after(span, [&ensemble, gene] { ensemble.resume(gene.a); });
        break;
      case Blow::move:
        if (victim.over() || lines->newest() == nullptr) break;
        lines->newest()->go_to(gene.a);
        lines->newest()->break_off();
        break;
      default:
        break;
    }
  };
  return play(world, victim, schedule, strike,
              [&] { return ensemble.counted_until(lines->newest()->session()); });
#else
  return {};
#endif
}

Margin run_etcd_schedule([[maybe_unused]] const Schedule& schedule) {
#ifdef BATON_WITH_ETCD
  internal::next_jitter_seed = 1;
  World world(schedule.seed);
  const auto lock = internal::parse_lock_name("lock").value();
  // Uses one server rate, because FakeEtcd has only one table of leases with one clock.
  EtcdSimStore store({world, {lock}, schedule.timeout, Quirks{}}, schedule.rates[0]);
  Victim victim(world, schedule);
  victim.enter(store.connect(victim.parts()));
  const auto strike = [&](const Gene& gene, Nanos span) {
    const auto member = static_cast<std::size_t>(gene.a);
    if (gene.blow == Blow::depose || gene.blow == Blow::apart) {
      store.isolate(member, span);
    } else if (gene.blow == Blow::stop) {
      store.stop(member, span);
    } else if (gene.blow == Blow::move) {
      store.etcd().elect(member, kElection);
    }
  };
  return play(world, victim, schedule, strike, [&]() -> Time {
    const auto entries = store.entries(lock);
    if (entries.empty()) return internal::kNever;
    return store.counted_until(static_cast<std::int64_t>(entries.front().session));
  });
#else
  return {};
#endif
}

}  // namespace baton::sim
