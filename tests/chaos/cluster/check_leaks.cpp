// Checks what is left behind in the store and in the processes.
#include "chaos/cluster/holds.h"

#include <algorithm>

namespace baton::chaos {
namespace {

constexpr double kMegabyte = 1024.0 * 1024.0;

struct Use {
  std::optional<Record> first, idle;  // after connecting; at the end, when idle
  // Memory over time, for a regression line.
  std::vector<std::pair<double, double>> memory;  // seconds, bytes
};

// The growth over the second half of a life, from a least-squares line. In the first half, caches
// and pools fill.
double growth(const std::vector<std::pair<double, double>>& all) {
  const std::vector<std::pair<double, double>> half(
      all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
  if (half.size() < 3) return 0;
  double t = 0;
  double m = 0;
  for (const auto& [time, memory] : half) {
    t += time;
    m += memory;
  }
  t /= static_cast<double>(half.size());
  m /= static_cast<double>(half.size());
  double above = 0;
  double below = 0;
  for (const auto& [time, memory] : half) {
    above += (time - t) * (memory - m);
    below += (time - t) * (time - t);
  }
  return below > 0 ? above / below * (half.back().first - half.front().first) : 0;
}

void check_process(Bench& bench, std::uint32_t client, const Use& use) {
  const JudgeOptions& options = bench.options;
  const Index& index = bench.index;
  const std::string name = "client " + std::to_string(client);
  if (use.first && use.idle) {
    bench.judged(Checker::leaks);
    const auto compare = [&](const char* what, std::uint64_t then, std::uint64_t now,
                             std::uint64_t slack) {
      if (now <= then + slack) return;
      bench.object(Checker::leaks, use.idle->at,
                   name + " has " + std::to_string(now) + " " + what + " when idle " +
                       index.when(use.idle->at) + ", and had " + std::to_string(then) + " " +
                       index.when(use.first->at));
    };
    compare("descriptors", use.first->value, use.idle->value, options.descriptor_slack);
    compare("threads", use.first->token, use.idle->token, options.thread_slack);
  }
  const double lived = use.memory.empty() ? 0 : use.memory.back().first - use.memory.front().first;
  if (lived < std::chrono::duration<double>(options.growth_after).count()) return;
  bench.judged(Checker::leaks);
  const double grown = growth(use.memory);
  // Allows 1 MiB an hour, and 1 MiB more because allocators keep memory.
  if (grown <= kMegabyte * (1 + lived / 2 / 3600)) return;
  bench.object(Checker::leaks, index.end,
               name + " has grown by " + std::to_string(static_cast<int>(grown / 1024)) +
                   " KiB in the second half of its " + std::to_string(static_cast<int>(lived)) +
                   " s");
}

}  // namespace

// The worker sets the text of `counted`: "connected" at first, "running" while it works, "idle"
// when all its calls have ended, "closed" after its client is closed. The first record may have no
// text.
void check_leaks(Bench& bench) {
  std::map<std::uint32_t, Use> uses;
  for (const Record& record : bench.records) {
    if (record.kind == Kind::leftover) {
      bench.object(Checker::leaks, record.at, "left in the store: " + record.text);
    }
    if (record.kind != Kind::counted) continue;
    Use& use = uses[record.client];
    if (!use.first) use.first = record;
    if (record.text == "idle") use.idle = record;
    if (record.text == "closed") continue;
    use.memory.emplace_back(std::chrono::duration<double>(record.at - bench.index.begin).count(),
                            static_cast<double>(record.until.count()));
  }
  bench.judged(Checker::leaks);  // the content of the store
  for (const auto& [client, use] : uses) check_process(bench, client, use);
}

}  // namespace baton::chaos
