// The report of a long run: one HTML file without scripts and without references to other files.
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
  std::vector<std::pair<std::string, std::string>> facts;  // additional lines of the summary
};

// The name of a fault: the words of its text before the first word with a digit.
std::string fault_kind(const std::string& text);

std::string report_html(const std::string& title, const std::vector<ReportRun>& runs);

// Throws std::runtime_error if the file cannot be written.
void write_report(const std::string& path, const std::string& title,
                  const std::vector<ReportRun>& runs);

}  // namespace baton::chaos
