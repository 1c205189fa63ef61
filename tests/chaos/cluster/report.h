// The report of a soak: one HTML file with nothing outside it and no script, drawn by our own code.
#pragma once

#include "chaos/cluster/history.h"
#include "chaos/cluster/verdict.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace baton::chaos {

struct ReportRun {
  std::string store;  // "zk 3.8.0", "etcd 3.4.23"
  std::uint64_t seed = 0;
  const std::vector<Record>* records = nullptr;  // sorted by time
  const Verdict* verdict = nullptr;
  std::vector<std::pair<std::string, std::string>> facts;  // more lines for the summary
};

// What a fault is called: the words of its text before the first with a digit in it.
std::string fault_kind(const std::string& text);

std::string report_html(const std::string& title, const std::vector<ReportRun>& runs);

// Throws std::runtime_error if the file cannot be written.
void write_report(const std::string& path, const std::string& title,
                  const std::vector<ReportRun>& runs);

}  // namespace baton::chaos
