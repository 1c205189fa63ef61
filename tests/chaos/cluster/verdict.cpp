#include "chaos/cluster/verdict.h"

#include "chaos/cluster/holds.h"

#include <baton/error.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>

namespace baton::chaos {
namespace {

constexpr std::array<std::string_view, kCheckers> kNames{
    "form", "overlap", "tokens", "fifo", "progress", "leaks", "early-loss", "revival", "register"};

}  // namespace

std::string_view name_of(Checker checker) { return kNames.at(static_cast<std::size_t>(checker)); }

std::optional<Checker> checker_of(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Checker>(found - kNames.begin());
}

bool Verdict::ok() const {
  return std::all_of(findings.begin(), findings.end(),
                     [](const Findings& each) { return each.violations == 0; });
}

void Verdict::print(std::FILE* out) const {
  for (std::size_t i = 0; i < kCheckers; ++i) {
    const Findings& each = findings[i];
    std::fprintf(out, "%-10s %9zu judged, %zu violations", std::string(kNames[i]).c_str(),
                 each.judged, each.violations);
    if (each.excused != 0) std::fprintf(out, ", %zu excused", each.excused);
    std::fprintf(out, "\n");
    for (const std::string& words : each.first) std::fprintf(out, "  %s\n", words.c_str());
  }
}

namespace {
constexpr std::uint64_t kAllClients = std::numeric_limits<std::uint64_t>::max();

bool told_of_its_entry(const Hold& hold) {
  return hold.lost && hold.code == static_cast<std::uint64_t>(Errc::evicted);
}
}  // namespace

Bench::Bench(const std::vector<Record>& all, const Index& i, const JudgeOptions& o, Verdict& v)
    : records(all), index(i), options(o), verdict(v) {
  std::map<std::uint64_t, Time> healed;
  std::map<std::uint64_t, Time> undoing;
  std::map<std::uint64_t, std::uint64_t> expired;
  std::map<std::uint64_t, std::shared_ptr<std::set<std::uint32_t>>> excused;
  for (const Record& record : records) {
    if (record.client != 0 || record.op == 0) continue;
    if (record.kind == Kind::healed) healed[record.op] = record.at;
    if (record.kind == Kind::resumed) undoing[record.op] = record.at;
    if (record.kind == Kind::expired) expired[record.op] = record.value;
  }
  for (const Allowance& allowance : options.allowances) {
    if (!options.store.starts_with(allowance.store)) continue;
    if (allowance.fault.empty()) {
      for (const Hole& hole : index.holes) {
        windows_.push_back({&allowance, hole.from, hole.to + allowance.after, kAllClients});
      }
      for (const Astray& each : index.astray) {
        windows_.push_back(
            {&allowance, each.from, std::min(each.to, index.end) + allowance.after, kAllClients});
      }
      continue;
    }
    for (const Record& record : records) {
      if (record.kind != Kind::fault || !record.text.starts_with(allowance.fault)) continue;
      const auto end = healed.find(record.op);
      const auto from = undoing.find(record.op);
      if (from == undoing.end()) continue;  // it was undone at the end of the run, or never
      const auto proof = expired.find(record.op);
      if (proof == expired.end()) continue;
      auto& clients = excused[record.op];
      if (clients == nullptr) clients = std::make_shared<std::set<std::uint32_t>>();
      windows_.push_back({&allowance, from->second,
                          (end == healed.end() ? index.end : end->second) + allowance.after,
                          proof->second, clients});
    }
  }
}

void Bench::judged(Checker checker, std::size_t count) {
  verdict.findings.at(static_cast<std::size_t>(checker)).judged += count;
}

void Bench::excuse(Checker checker, std::string_view issue, const std::string& words) {
  Findings& findings = verdict.findings.at(static_cast<std::size_t>(checker));
  if (++findings.excused > options.list) return;
  findings.first.push_back("excused (" + std::string(issue) + "): " + words);
}

bool Bench::may_forget(Time at) const {
  return std::any_of(windows_.begin(), windows_.end(), [at](const Window& window) {
    return window.allowance->fault.empty() && window.from <= at && at <= window.to;
  });
}

void Bench::object(Checker checker, Time at, const std::string& words, const Hold* bereft) {
  Findings& findings = verdict.findings.at(static_cast<std::size_t>(checker));
  for (const Window& window : windows_) {
    if (bereft == nullptr || bereft->confirmed) break;
    if (window.allowance->checker != checker || at < window.from || at > window.to) continue;
    if (window.allowance->fault.empty() && !told_of_its_entry(*bereft)) continue;
    if (!window.excused->contains(bereft->client)) {
      if (window.excused->size() >= window.clients) continue;
      window.excused->insert(bereft->client);
    }
    excuse(checker, window.allowance->issue, words);
    return;
  }
  if (++findings.violations <= options.list) findings.first.push_back(words);
}

Verdict judge(const std::vector<Record>& records, const JudgeOptions& options) {
  Verdict verdict;
  const bool forgetful = std::any_of(
      options.allowances.begin(), options.allowances.end(), [&](const Allowance& allowance) {
        return allowance.fault.empty() && options.store.starts_with(allowance.store);
      });
  const Index index(records, forgetful);
  for (const auto& [lock, list] : index.grants) verdict.grants += list.size();
  Bench bench(records, index, options, verdict);
  for (const Hole& hole : index.holes) {
    bench.excuse(Checker::fifo, "ZOOKEEPER-4785",
                 "a server showed " + std::to_string(hole.entries) + " entries " +
                     index.when(hole.to) + " that were gone, the first " + index.when(hole.from));
  }
  for (const Astray& each : index.astray) {
    bench.excuse(Checker::fifo, "ZOOKEEPER-4785",
                 "server " + std::to_string(each.server) + " noticed " + index.when(each.known) +
                     " that it had not what was committed; it had begun " + index.when(each.from) +
                     (each.to == Time::max() ? " and was not rebuilt"
                                             : " and was rebuilt " + index.when(each.to)));
  }
  check_form(bench);
  check_overlap(bench);
  check_evictions(bench);
  check_tokens(bench);
  check_fifo(bench);
  check_progress(bench);
  check_leaks(bench);
  check_early_loss(bench);
  check_revival(bench);
  check_register(bench);
  collect_handovers(bench);
  return verdict;
}

}  // namespace baton::chaos
