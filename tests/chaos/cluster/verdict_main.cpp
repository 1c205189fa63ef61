// baton_chaos_verdict: judges the histories of an earlier run again.
//
//   baton_chaos_verdict [--report FILE] STORE=DIRECTORY...
//
//
// STORE is the store with its version, as in the report: "zk 3.8.0", "etcd 3.4.23". The known bugs
// depend on it. Exit codes: 0 no violation, 1 violations, 64 wrong usage.
#include "chaos/cluster/report.h"
#include "chaos/cluster/verdict.h"

#include <cstdio>
#include <deque>
#include <exception>
#include <string>
#include <vector>

namespace baton::chaos {
namespace {

int judge_all(const std::vector<std::string>& arguments) {
  std::string report;
  std::deque<std::vector<Record>> records;
  std::deque<Verdict> verdicts;
  std::vector<ReportRun> runs;
  JudgeOptions options;
  bool fine = true;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--report" && i + 1 < arguments.size()) {
      report = arguments[++i];
      continue;
    }
    const auto equals = argument.find('=');
    if (equals == std::string::npos) return 64;
    options.store = argument.substr(0, equals);
    options.damage.clear();
    records.push_back(read_histories(argument.substr(equals + 1), &options.damage));
    verdicts.push_back(judge(records.back(), options));
    std::printf("%s: %zu grants\n", options.store.c_str(), verdicts.back().grants);
    verdicts.back().print(stdout);
    fine = fine && verdicts.back().ok();
    runs.push_back({options.store, 0, &records.back(), &verdicts.back(), {}});
  }
  if (runs.empty()) return 64;
  if (!report.empty()) write_report(report, "baton under chaos", runs);
  return fine ? 0 : 1;
}

}  // namespace
}  // namespace baton::chaos

int main(int argc, char** argv) {
  try {
    const int code = baton::chaos::judge_all({argv + 1, argv + argc});
    if (code == 64) {
      std::fprintf(stderr, "usage: baton_chaos_verdict [--report FILE] STORE=DIRECTORY...\n");
    }
    return code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "baton_chaos_verdict: %s\n", error.what());
    return 64;
  }
}
