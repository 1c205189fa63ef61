#include "support/etcd_metrics.h"

#include <cstdlib>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

namespace baton::test {
namespace {

struct Series {
  std::string name;
  std::set<std::string> labels;  // `grpc_method="Range"`
};

// Parses `name{label="x",other="y"} ...`. Label values must not contain commas or braces.
Series parse(std::string_view text) {
  Series series;
  const auto end = text.find_first_of("{ ");
  series.name = text.substr(0, end);
  if (end == text.npos || text[end] != '{') return series;
  std::istringstream labels(std::string(text.substr(end + 1, text.find('}') - end - 1)));
  for (std::string label; std::getline(labels, label, ',');) series.labels.insert(label);
  return series;
}

}  // namespace

double metric_in(const std::string& text, const std::string& which) {
  const Series wanted = parse(which);
  double sum = -1;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(wanted.name)) continue;
    const Series found = parse(line);
    if (found.name != wanted.name) continue;
    bool all = true;
    for (const auto& label : wanted.labels) all = all && found.labels.contains(label);
    if (!all) continue;
    sum = (sum < 0 ? 0 : sum) + std::strtod(line.c_str() + line.rfind(' '), nullptr);
  }
  return sum;
}

}  // namespace baton::test
