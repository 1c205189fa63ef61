// Runs chaos on real clusters: servers, client processes, and faults on both; then judges the run.
//   baton_chaos --store zk|etcd|both --seconds 120 --seed 7
//   baton_chaos --store zk --control no-token-check=register   the checker must object
#include "chaos/cluster/arguments.h"
#include "chaos/cluster/controls.h"
#include "chaos/cluster/history.h"
#include "chaos/cluster/report.h"
#include "chaos/cluster/run.h"
#include "chaos/cluster/verdict.h"
#include "support/etcd_server.h"
#include "support/zk_server.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace baton::chaos {
namespace {

namespace fs = std::filesystem;

constexpr int kSkipped = 77;
// In a run of this length every checker has something to judge, with any seed.
constexpr std::chrono::seconds kLongEnough{60};

// One run and its results.
struct Outcome {
  std::string store;
  RunResult result;
  std::vector<Record> records;
  Verdict verdict;
  std::vector<std::string> failures;
  std::string tails;  // of the servers' logs, if there are problems
};

void judge_run(Outcome& outcome, const Arguments& arguments, const std::string& directory,
               const std::string& store) {
  JudgeOptions options;
  options.store = store;
  options.progress_bound = arguments.plan.calm;
  // A call may wait for two threads in turn, and each of them may be woken late.
  options.call_slack += 2 * outcome.result.latest;
  outcome.records = read_histories(directory, &options.damage);
  outcome.verdict = judge(outcome.records, options);
}

Outcome run_once(Cluster& cluster, const Arguments& arguments, const RunPlan& plan) {
  fs::create_directories(plan.directory);
  if (!fs::is_empty(plan.directory)) throw std::runtime_error(plan.directory + " is not empty");
  Outcome outcome;
  outcome.store = cluster.scheme();
  outcome.result = run_chaos(cluster, plan);
  if (!outcome.result.problems.empty()) {
    outcome.tails = cluster.tails();
    outcome.failures.push_back("problems");
  }
  judge_run(outcome, arguments, plan.directory, cluster.version());
  return outcome;
}

// The kinds of leftovers of the control "litter" that were not found: an entry, its session, a
// watch.
std::vector<std::string> missed_litter(const std::string& control,
                                       const std::vector<Record>& records) {
  if (!missing_in(control).tidiness) return {};
  std::set<std::string> kinds;
  for (const auto& record : records) {
    if (record.kind != Kind::leftover) continue;
    if (record.text.starts_with("key ") || record.text.starts_with("node ")) kinds.insert("entry");
    if (record.text.starts_with("lease ") || record.text.starts_with("session ")) {
      kinds.insert("session");
    }
    if (record.text.find(" watches at ") != std::string::npos) kinds.insert("watch");
  }
  std::vector<std::string> missed;
  for (const char* kind : {"entry", "session", "watch"}) {
    if (!kinds.contains(kind)) missed.emplace_back(kind);
  }
  return missed;
}

std::vector<Outcome> run_on(const std::string& store, const Arguments& arguments) {
  const auto cluster = store == "zk" ? make_zk_cluster() : make_etcd_cluster();
  std::vector<Outcome> all;
  RunPlan plan = arguments.plan;
  const std::string directory = plan.directory + "/" + store;
  if (arguments.controls.empty()) {
    plan.directory = directory;
    auto& outcome = all.emplace_back(run_once(*cluster, arguments, plan));
    if (!outcome.verdict.ok()) outcome.failures.push_back("a promise was broken");
    if (outcome.result.faults < arguments.least_faults) {
      outcome.failures.push_back("fewer faults than there should have been");
    }
    // One store must not reach the number alone.
    if (outcome.verdict.grants < arguments.least_grants / arguments.stores.size() / 2) {
      outcome.failures.push_back("fewer grants than there should have been");
    }
    // A run with selected faults may lose no lock, and then `revival` has nothing to judge.
    const bool all_kinds = plan.time >= kLongEnough && plan.only.empty();
    for (std::size_t i = 0; all_kinds && i < kCheckers; ++i) {
      const auto checker = static_cast<Checker>(i);
      if (outcome.verdict.of(checker).judged != 0) continue;
      outcome.failures.push_back("nothing to judge for: " + std::string(name_of(checker)));
    }
  }
  for (const auto& control : arguments.controls) {
    plan.directory = directory + "-" + control.name;
    plan.control = control.name;
    cluster->use_root("/chaos-" + control.name);
    auto& outcome = all.emplace_back(run_once(*cluster, arguments, plan));
    outcome.store += " without a defence: " + control.name;
    for (const Checker checker : control.checkers) {
      if (outcome.verdict.of(checker).violations != 0) continue;
      outcome.failures.push_back("not noticed by: " + std::string(name_of(checker)));
    }
    for (const auto& kind : missed_litter(control.name, outcome.records)) {
      outcome.failures.push_back("left in the store and not seen: " + kind);
    }
  }
  return all;
}

void print(const Outcome& outcome) {
  std::printf("\n== %s: %llu faults of %zu kinds, %zu grants, %zu records\n", outcome.store.c_str(),
              static_cast<unsigned long long>(outcome.result.faults), outcome.result.kinds.size(),
              outcome.verdict.grants, outcome.records.size());
  std::string line;
  for (const auto& [kind, count] : outcome.result.kinds) {
    line += (line.empty() ? "" : ", ") + kind + " " + std::to_string(count);
  }
  std::printf("%s\nthreads were woken up to %lld ms late\n", line.c_str(),
              static_cast<long long>(outcome.result.latest.count()));
  outcome.verdict.print(stdout);
  for (const auto& problem : outcome.result.problems) {
    std::printf("problem: %s\n", problem.c_str());
  }
  if (!outcome.tails.empty()) std::printf("%s\n", outcome.tails.c_str());
  for (const auto& failure : outcome.failures) {
    std::printf("FAILED %s: %s\n", outcome.store.c_str(), failure.c_str());
  }
}

// Runs all stores at the same time.
std::vector<Outcome> run_all(const Arguments& arguments) {
  std::vector<Outcome> all;
  std::mutex mutex;
  std::vector<std::jthread> threads;
  for (const auto& store : arguments.stores) {
    threads.emplace_back([&, store] {
      std::vector<Outcome> mine;
      try {
        mine = run_on(store, arguments);
      } catch (const std::exception& error) {
        mine.emplace_back().store = store;
        mine.back().failures.emplace_back(error.what());
      }
      const std::lock_guard guard(mutex);
      std::move(mine.begin(), mine.end(), std::back_inserter(all));
    });
  }
  threads.clear();
  return all;
}

void write_report_of(const std::vector<Outcome>& outcomes, const Arguments& arguments) {
  std::vector<ReportRun> runs;
  for (const auto& outcome : outcomes) {
    runs.push_back({.store = outcome.store,
                    .seed = arguments.plan.seed,
                    .records = &outcome.records,
                    .verdict = &outcome.verdict,
                    .facts = {{"command", arguments.replay}}});
  }
  write_report(arguments.report, "baton: chaos on clusters", runs);
  std::printf("\nreport: %s\n", arguments.report.c_str());
}

int run(Arguments arguments) {
  if (!test::zk_installed() || !test::etcd_installed()) {
    std::printf("no servers on this machine\n");
    return kSkipped;
  }
  auto& directory = arguments.plan.directory;
  if (directory.empty()) {
    directory = (fs::temp_directory_path() / "baton-chaos-XXXXXX").string();
    if (::mkdtemp(directory.data()) == nullptr) throw std::runtime_error("no temporary directory");
  }
  std::printf("%s\nhistories: %s\n", arguments.replay.c_str(), directory.c_str());
  std::fflush(stdout);
  bool failed = false;
  std::uint64_t grants = 0;
  const auto outcomes = run_all(arguments);
  for (const auto& outcome : outcomes) {
    print(outcome);
    grants += outcome.verdict.grants;
    failed = failed || !outcome.failures.empty();
  }
  if (grants < arguments.least_grants) {
    std::printf("FAILED: fewer grants than there should have been\n");
    failed = true;
  }
  if (!arguments.report.empty()) write_report_of(outcomes, arguments);
  if (failed) {
    std::printf("\nagain: %s\nhistories: %s\n", arguments.replay.c_str(), directory.c_str());
  } else if (!arguments.keep) {
    fs::remove_all(directory);
  }
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace baton::chaos

int main(int argc, char** argv) {
  try {
    return baton::chaos::run(baton::chaos::parse_arguments(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "baton_chaos: %s\n", error.what());
    return 64;
  }
}
