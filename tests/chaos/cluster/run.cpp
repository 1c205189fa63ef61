#include "chaos/cluster/run.h"

#include "chaos/cluster/auditor.h"
#include "chaos/cluster/contender.h"
#include "chaos/cluster/controls.h"
#include "chaos/cluster/crew.h"
#include "chaos/cluster/history.h"
#include "chaos/cluster/nemesis.h"
#include "chaos/cluster/observer.h"
#include "chaos/cluster/register.h"
#include "support/boot_clock.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::boot_now;

constexpr std::chrono::milliseconds kUnbroken = 2s;  // duration of the controls that need no fault
// By then the store has ended dead sessions and has removed what belonged to them.
constexpr std::chrono::milliseconds kGone = 3 * kSession + 2s;

void write(const HistoryWriter& history, Kind kind, const std::string& text = {}) {
  Record record;
  record.kind = kind;
  record.text = text;
  record.at = boot_now();
  history.write(record);
}

// Measures the longest delay with which this machine wakes a thread. Calls may be that late, too.
class Sleeper {
 public:
  std::chrono::milliseconds latest() const {
    return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::nanoseconds(latest_));
  }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto due = boot_now() + 20ms;
      std::this_thread::sleep_for(20ms);
      latest_ = std::max(latest_.load(), (boot_now() - due).count());
    }
  }

  std::atomic<std::int64_t> latest_{0};
  std::jthread thread_{[this](const std::stop_token& stop) { run(stop); }};
};

void heal_servers(Cluster& cluster) {
  cluster.heal_all();
  for (int i = 0; i < cluster.size(); ++i) {
    cluster.resume(i);
    cluster.start(i, false);
  }
  cluster.wait_synced();
}

std::vector<FaultKind> chosen(std::vector<FaultKind> kinds, const std::set<std::string>& only) {
  if (!only.empty()) {
    std::erase_if(kinds, [&](const FaultKind& k) { return !only.contains(std::string(k.name)); });
  }
  return kinds;
}

void break_all(Scene& scene, Auditor& auditor, const RunPlan& plan) {
  if (!plan.control.empty() && !missing_in(plan.control).needs_pauses()) {
    pass(kUnbroken);
    return;
  }
  auto clients = client_faults();
  const auto operators = operator_faults();
  const auto foreign = foreign_faults();
  clients.insert(clients.end(), operators.begin(), operators.end());
  clients.insert(clients.end(), foreign.begin(), foreign.end());
  if (!plan.control.empty()) clients = control_faults();
  clients = chosen(std::move(clients), plan.only);
  const auto of_servers = chosen(server_faults(scene.cluster.scheme()), plan.only);
  if (clients.empty() && of_servers.empty()) {
    throw std::invalid_argument("--only names no kind of fault of this store");
  }
  // This thread injects faults into clients, because it started them and must live as long as they
  // do.
  std::stop_source stop;
  std::jthread servers;
  if (plan.control.empty()) {
    servers = std::jthread([&] {
      break_things(scene, of_servers, plan.seed * 2, plan.every,
                   {.upkeep = [&] { static_cast<void>(auditor.mend()); },
                    .repair = [&] { heal_servers(scene.cluster); }},
                   stop.get_token());
    });
  }
  const std::jthread timer([&](const std::stop_token& done) {
    const test::Stopwatch watch;
    while (watch.elapsed() < plan.time && !done.stop_requested()) pass(10ms);
    stop.request_stop();
  });
  break_things(scene, clients, plan.seed * 2 + 1, plan.every,
               {.upkeep = [] {}, .repair = [&] { scene.crew.heal(); }}, stop.get_token());
}

void look_for_leftovers(Cluster& cluster, const HistoryWriter& history) {
  std::vector<std::string> left;
  const test::Stopwatch watch;
  do {
    left = cluster.leftovers();
    if (left.empty()) return;
    pass(100ms);
  } while (watch.elapsed() < kGone);
  for (const auto& what : left) write(history, Kind::leftover, what);
}

void read_registers(const RunPlan& plan, const HistoryWriter& history) {
  for (int lock = 0; lock < plan.locks; ++lock) {
    Record record;
    record.kind = Kind::read;
    record.lock = static_cast<std::uint32_t>(lock);
    record.value = register_value(plan.directory, record.lock);
    record.at = boot_now();
    history.write(record);
  }
}

}  // namespace

RunResult run_chaos(Cluster& cluster, const RunPlan& plan) {
  const HistoryWriter history(plan.directory + "/driver.history", 0);
  const Sleeper sleeper;
  Observer observer(cluster, history, plan.locks);
  Auditor auditor(cluster, history);
  Crew crew({.worker = plan.worker,
             .clock_library = plan.clock_library,
             .directory = plan.directory,
             .clients = plan.clients,
             .locks = plan.locks,
             .threads = plan.threads,
             .seed = plan.seed,
             .control = plan.control},
            cluster, history);
  Scene scene{.cluster = cluster,
              .crew = crew,
              .observer = observer,
              .history = history,
              .locks = plan.locks,
              .directory = plan.directory};
  RunResult result;
  try {
    break_all(scene, auditor, plan);
    crew.heal();
    heal_servers(cluster);
    auditor.settle();
    write(history, Kind::calm);
    pass(plan.calm);
  } catch (const std::exception& error) {
    result.problems.emplace_back(error.what());
  }
  for (const auto& accident : crew.finish()) result.problems.push_back(accident);
  try {
    observer.stop();
    std::optional<Litter> litter;
    if (missing_in(plan.control).tidiness) {
      litter.emplace(cluster.url(cluster.ports()), lock_name(0));
    }
    look_for_leftovers(cluster, history);
  } catch (const std::exception& error) {
    result.problems.emplace_back(error.what());
  }
  read_registers(plan, history);
  result.faults = scene.faults;
  result.latest = sleeper.latest();
  result.kinds = scene.kinds;
  result.problems.insert(result.problems.end(), scene.problems.begin(), scene.problems.end());
  return result;
}

}  // namespace baton::chaos
