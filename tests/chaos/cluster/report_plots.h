// The plots of the report.
#pragma once

#include "chaos/cluster/report.h"

#include <string>
#include <vector>

namespace baton::chaos {

// Percentile of sorted values: share 0.5 is the median, 1 the greatest.
double share_of(const std::vector<double>& sorted, double share);
// In milliseconds, sorted.
std::vector<double> values_of(const std::vector<Sample>& samples);

std::string plot_grants(const ReportRun& run);     // grants over time, and below them the faults
std::string plot_handovers(const ReportRun& run);  // percentiles over time
std::string plot_histogram(const std::vector<double>& milliseconds, std::string_view title);
std::string plot_memory(const ReportRun& run);

}  // namespace baton::chaos
