#include "attack.h"

#include "attack_schedule.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace baton::sim {

using std::chrono::milliseconds;

namespace {

// A clock rate: one of the two extremes that A2 allows, or zero.
std::int64_t extreme_rate(World& chance) {
  constexpr std::array<std::int64_t, 3> kRates = {-4'900, 0, 4'900};
  return kRates[chance.pick(0, 2)];
}

double share(World& chance, double most) {
  return most * static_cast<double>(chance.pick(0, 10'000)) / 10'000;
}

Gene random_gene(World& chance) {
  Gene gene;
  gene.blow = static_cast<Blow>(chance.pick(0, static_cast<std::uint64_t>(Blow::count_) - 1));
  gene.a = static_cast<int>(chance.pick(0, 2));
  gene.b = (gene.a + static_cast<int>(chance.pick(1, 2))) % 3;
  gene.at = 1 + share(chance, 4);
  gene.span = chance.chance(0.3) ? share(chance, 4) : share(chance, 1);
  return gene;
}

}  // namespace

Schedule Schedule::random(World& chance) {
  Schedule made;
  made.seed = chance.pick(1, 1U << 30);
  constexpr std::array<int, 4> kTimeouts = {1'000, 2'000, 4'000, 10'000};
  made.timeout = milliseconds(kTimeouts[chance.pick(0, 3)]);
  made.ticks = static_cast<int>(chance.chance(0.6) ? 2 : chance.pick(3, 10));
  made.sync_limit = static_cast<int>(chance.pick(2, 10));
  for (auto& rate : made.rates) rate = extreme_rate(chance);
  made.rate = extreme_rate(chance);
  made.home = static_cast<int>(chance.pick(0, 2));
  for (auto n = chance.pick(1, 5); n > 0; --n) made.genes.push_back(random_gene(chance));
  return made;
}

Schedule Schedule::held_back(World& chance) {
  Schedule made = random(chance);
  made.home = 1;
  made.ticks = 2;
  const double at = 2 + share(chance, 1);
  const double span = 0.3 + share(chance, 0.5);
  made.genes = {{Blow::stall, 0, 1, at, span}, {Blow::stall, 1, 0, at + span - 0.01, 4}};
  return made;
}

Schedule Schedule::varied(World& chance) const {
  Schedule made = *this;
  for (auto changes = chance.pick(1, 3); changes > 0; --changes) {
    Gene* const gene =
        made.genes.empty() ? nullptr : &made.genes[chance.pick(0, made.genes.size() - 1)];
    // Small steps are far more frequent than large steps.
    const double step =
        (chance.chance(0.5) ? 1 : -1) * share(chance, chance.chance(0.7) ? 0.02 : 0.3);
    switch (chance.pick(0, 9)) {
      case 0:
        made.genes.push_back(random_gene(chance));
        break;
      case 1:
        if (made.genes.size() > 1) made.genes.erase(made.genes.begin() + (gene - &made.genes[0]));
        break;
      case 2:
      case 3:
      case 4:
        if (gene != nullptr) gene->at = std::max(1.0, gene->at + step);
        break;
      case 5:
      case 6:
        if (gene != nullptr) gene->span = std::max(0.0, gene->span + step);
        break;
      case 7:
        // Shifts all faults, so that they meet the ticks at another phase.
        for (auto& each : made.genes) each.at = std::max(1.0, each.at + step);
        break;
      case 8:
        made.seed = chance.pick(1, 1U << 30);
        break;
      default:
        if (chance.chance(0.5)) {
          made.rate = extreme_rate(chance);
        } else {
          made.rates[chance.pick(0, 2)] = extreme_rate(chance);
        }
    }
  }
  if (made.genes.size() > 8) made.genes.pop_back();
  return made;
}

std::string Schedule::text() const {
  constexpr std::array kNames = {"stall", "apart", "stop",  "mute",
                                 "deaf",  "move",  "pause", "depose"};
  std::string all = "T " + std::to_string(timeout.count()) + " ms, " + std::to_string(ticks) +
                    " ticks, sync limit " + std::to_string(sync_limit) + ", client at server " +
                    std::to_string(home) + ", rates " + std::to_string(rate);
  for (const auto each : rates) all += " " + std::to_string(each);
  for (const auto& gene : genes) {
    char line[96];
    std::snprintf(line, sizeof line, "; %.3f T: %s %d %d for %.3f T", gene.at,
                  kNames[static_cast<std::size_t>(gene.blow)], gene.a, gene.b, gene.span);
    all += line;
  }
  return all;
}

// Searches with several climbers. A climber varies its schedule and keeps a variant whose margin is
// not larger. A climber that makes no progress for 120 tries begins again with a new schedule.
AttackResult attack(const AttackPlan& plan) {
  constexpr std::size_t kClimbers = 8;
  struct Climber {
    Schedule schedule;
    Nanos margin{};
    int stuck = 0;
  };
  World chance(plan.seed);
  AttackResult result;
  Nanos best = std::chrono::hours(1);
  const auto run = [&](const Schedule& schedule) {
    const Margin margin =
        plan.store == StoreKind::etcd ? run_etcd_schedule(schedule) : run_zk_schedule(schedule);
    ++result.tried;
    result.heartbeats += margin.taken;
    if (margin.smallest < best) {
      best = margin.smallest;
      result.schedule = schedule.text();
      if (plan.tell) {
        std::printf("%6llu  margin %.3f ms: %s\n", static_cast<unsigned long long>(result.tried),
                    std::chrono::duration<double, std::milli>(best).count(),
                    result.schedule.c_str());
      }
    }
    return margin.smallest;
  };
  const auto fresh = [&] {
    return plan.store == StoreKind::zk && chance.chance(0.4) ? Schedule::held_back(chance)
                                                             : Schedule::random(chance);
  };
  std::vector<Climber> climbers;
  while (result.tried < plan.count && !(plan.stop_at_violation && best <= Nanos{})) {
    if (climbers.size() < kClimbers) {
      Climber climber{fresh(), {}, 0};
      climber.margin = run(climber.schedule);
      climbers.push_back(std::move(climber));
      continue;
    }
    Climber& climber = climbers[chance.pick(0, kClimbers - 1)];
    Schedule next = climber.stuck > 120 ? fresh() : climber.schedule.varied(chance);
    const Nanos margin = run(next);
    // Compares margins as a share of T, so that small timeouts have no advantage.
    const double before = static_cast<double>(climber.margin.count()) /
                          static_cast<double>(climber.schedule.timeout.count());
    const double after =
        static_cast<double>(margin.count()) / static_cast<double>(next.timeout.count());
    if (after <= before || climber.stuck > 120) {
      climber.stuck = after < before || climber.stuck > 120 ? 0 : climber.stuck + 1;
      climber.schedule = std::move(next);
      climber.margin = margin;
    } else {
      ++climber.stuck;
    }
  }
  result.margin_ms = std::chrono::duration<double, std::milli>(best).count();
  return result;
}

}  // namespace baton::sim
