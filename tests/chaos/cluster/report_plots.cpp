#include "chaos/cluster/report_plots.h"

#include "chaos/cluster/report_svg.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace baton::chaos {
namespace {

constexpr double kWidth = 1000;
constexpr double kLeft = 130;
constexpr double kRight = 975;
constexpr std::string_view kBlue = "#2a6fbb";
constexpr std::string_view kDeep = "#173f6d";
constexpr std::string_view kRed = "#c0392b";
constexpr std::string_view kFault = "#c98a1b";

double seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

double milliseconds(std::chrono::nanoseconds duration) { return seconds(duration) * 1000; }

Axis time_axis(const ReportRun& run) {
  const auto& records = *run.records;
  const double span = records.empty() ? 1 : seconds(records.back().at - records.front().at);
  return {0, std::max(span, 1.0), kLeft, kRight, false};
}

double since_begin(const ReportRun& run, std::chrono::nanoseconds at) {
  return seconds(at - run.records->front().at);
}

struct Fault {
  double from = 0, to = 0;
  std::string text;
};

std::map<std::string, std::vector<Fault>> faults_of(const ReportRun& run, double end) {
  std::map<std::string, std::vector<Fault>> kinds;
  std::map<std::uint64_t, std::pair<std::string, std::size_t>> open;
  for (const Record& record : *run.records) {
    if (record.kind == Kind::fault) {
      auto& list = kinds[fault_kind(record.text)];
      open[record.op] = {fault_kind(record.text), list.size()};
      list.push_back({since_begin(run, record.at), end, record.text});
    } else if (record.kind == Kind::healed) {
      const auto found = open.find(record.op);
      if (found == open.end()) continue;
      kinds[found->second.first][found->second.second].to = since_begin(run, record.at);
    }
  }
  return kinds;
}

std::string style(std::string_view what, std::string_view colour, std::string_view more = {}) {
  return std::string(what) + ":" + std::string(colour) + ";" + std::string(more);
}

}  // namespace

double share_of(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(std::ceil(share * last))];
}

std::vector<double> values_of(const std::vector<Sample>& samples) {
  std::vector<double> values;
  values.reserve(samples.size());
  for (const Sample& sample : samples) values.push_back(milliseconds(sample.value));
  std::sort(values.begin(), values.end());
  return values;
}

std::string plot_grants(const ReportRun& run) {
  const Axis x = time_axis(run);
  const auto kinds = faults_of(run, x.to);
  constexpr double kPlot = 200;
  constexpr double kLane = 15;
  const double lanes = kPlot + 50;
  Picture picture(kWidth, lanes + kLane * static_cast<double>(kinds.size()) + 8);

  const double width = std::max(1.0, std::ceil(x.to / 400));  // seconds a step
  std::vector<double> counts(static_cast<std::size_t>(x.to / width) + 1, 0.0);
  for (const Record& record : *run.records) {
    if (record.kind != Kind::granted) continue;
    counts[static_cast<std::size_t>(since_begin(run, record.at) / width)] += 1;
  }
  // The last step is shorter than the others.
  const double rest = x.to - width * static_cast<double>(counts.size() - 1);
  for (double& count : counts) count /= width;
  if (rest < width * 0.9 && counts.size() > 1) counts.pop_back();
  const double most = *std::max_element(counts.begin(), counts.end());
  const Axis y{0, std::max(most * 1.08, 1.0), kPlot, 12, false};
  for (const auto& [kind, list] : kinds) {
    for (const Fault& fault : list) {
      picture.rect(x.at(fault.from), y.pixel_to, std::max(1.0, x.at(fault.to) - x.at(fault.from)),
                   kPlot - y.pixel_to, "fill:#c98a1b;fill-opacity:0.07");
    }
  }
  draw_axes(picture, x, y, true, false);
  std::vector<std::pair<double, double>> steps;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    steps.emplace_back(x.at(width * static_cast<double>(i)), y.at(counts[i]));
    steps.emplace_back(x.at(width * static_cast<double>(i + 1)), y.at(counts[i]));
  }
  picture.path(steps, style("stroke", kBlue, "stroke-width:1.5"));
  for (const Record& record : *run.records) {
    if (record.kind != Kind::calm) continue;
    const double at = x.at(since_begin(run, record.at));
    picture.line(at, y.pixel_to, at, kPlot, "stroke:#2e8b57;stroke-dasharray:4 3");
    picture.text(at - 4, y.pixel_to + 8, "end", "no more faults", "fill:#2e8b57");
  }
  double lane = lanes;
  for (const auto& [kind, list] : kinds) {
    picture.text(kLeft - 8, lane + 10, "end", kind);
    picture.line(kLeft, lane + 7, kRight, lane + 7, "stroke:#efede8");
    for (const Fault& fault : list) {
      picture.rect(
          x.at(fault.from), lane + 2, std::max(3.0, x.at(fault.to) - x.at(fault.from)), kLane - 5,
          style("fill", kFault, "fill-opacity:0.85"),
          fault.text + ", " + number(fault.from, 2) + " s to " + number(fault.to, 2) + " s");
    }
    lane += kLane;
  }
  return picture.done("grants per second, and below them the faults");
}

std::string plot_handovers(const ReportRun& run) {
  const Axis x = time_axis(run);
  constexpr double kPlot = 220;
  Picture picture(kWidth, kPlot + 28);
  const double width = std::max(1.0, std::ceil(x.to / 150));
  std::vector<std::vector<double>> steps(static_cast<std::size_t>(x.to / width) + 1);
  double least = 1;
  double most = 10;
  for (const Sample& sample : run.verdict->handovers) {
    const double ms = std::max(milliseconds(sample.value), 0.01);
    steps[static_cast<std::size_t>(since_begin(run, sample.at) / width)].push_back(ms);
    least = std::min(least, ms);
    most = std::max(most, ms);
  }
  const Axis y{std::pow(10, std::floor(std::log10(least))),
               std::pow(10, std::ceil(std::log10(most))), kPlot, 12, true};
  draw_axes(picture, x, y, true, true);
  std::vector<std::pair<double, double>> median;
  std::vector<std::pair<double, double>> high;
  const auto draw = [&] {  // ends the lines at a gap: no line crosses a time without values
    picture.path(high, "stroke:#7fb0e3;stroke-width:1.5");
    picture.path(median, style("stroke", kDeep, "stroke-width:1.8"));
    high.clear();
    median.clear();
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    auto& values = steps[i];
    if (values.empty()) {
      draw();
      continue;
    }
    std::sort(values.begin(), values.end());
    const double middle = (static_cast<double>(i) + 0.5) * width;
    median.emplace_back(x.at(middle), y.at(share_of(values, 0.5)));
    high.emplace_back(x.at(middle), y.at(share_of(values, 0.99)));
    picture.dot(x.at(middle), y.at(share_of(values, 0.5)), 1.4, style("fill", kDeep));
    picture.dot(x.at(middle), y.at(values.back()), 1.8, "fill:#9aa4b0",
                "longest of " + std::to_string(values.size()) + " at " + number(middle, 0) +
                    " s: " + duration_text(values.back()) + ", median " +
                    duration_text(share_of(values, 0.5)));
  }
  draw();
  const auto legend = [&](double at, std::string_view colour, std::string_view words) {
    picture.rect(at, 2, 14, 4, style("fill", colour));
    picture.text(at + 19, 8, "start", words);
  };
  legend(kRight - 230, kDeep, "median");
  legend(kRight - 150, "#7fb0e3", "99 %");
  legend(kRight - 85, "#9aa4b0", "longest");
  return picture.done("hand-over latency over time");
}

std::string plot_histogram(const std::vector<double>& sorted, std::string_view title) {
  constexpr double kWide = 480;
  constexpr double kPlot = 170;
  Picture picture(kWide, kPlot + 28);
  if (sorted.empty()) {
    picture.text(kWide / 2, kPlot / 2, "middle", "none in this run");
    return picture.done(title);
  }
  // The bars are on a logarithmic scale, five a decade. Values that are not positive have one red
  // bar.
  constexpr double kBarsADecade = 5;
  const auto positive = std::upper_bound(sorted.begin(), sorted.end(), 0.0);
  const auto below = static_cast<std::size_t>(positive - sorted.begin());
  const double least = positive == sorted.end() ? 1 : std::max(*positive, 0.01);
  const double low = std::floor(std::log10(least));
  const double high =
      std::max(low + 1, std::ceil(std::log10(std::max(sorted.back(), least)) + 1e-9));
  const Axis x{std::pow(10, low), std::pow(10, high), below != 0 ? 110.0 : 60.0, kWide - 22, true};
  std::vector<std::size_t> bars(static_cast<std::size_t>((high - low) * kBarsADecade), 0);
  for (auto it = positive; it != sorted.end(); ++it) {
    const double bar = (std::log10(std::max(*it, 0.01)) - low) * kBarsADecade;
    ++bars[std::min(bars.size() - 1, static_cast<std::size_t>(std::max(0.0, bar)))];
  }
  const std::size_t most = std::max(below, *std::max_element(bars.begin(), bars.end()));
  const Axis y{0, static_cast<double>(most) * 1.1, kPlot, 12, false};
  draw_axes(picture, x, y, false, false);
  const double wide = (x.pixel_to - x.pixel_from) / static_cast<double>(bars.size());
  for (std::size_t i = 0; i < bars.size(); ++i) {
    if (bars[i] == 0) continue;
    const double from = std::pow(10, low + static_cast<double>(i) / kBarsADecade);
    const double to = std::pow(10, low + static_cast<double>(i + 1) / kBarsADecade);
    const double top = y.at(static_cast<double>(bars[i]));
    picture.rect(
        x.pixel_from + wide * static_cast<double>(i) + 1, top, wide - 2, kPlot - top,
        style("fill", kBlue),
        std::to_string(bars[i]) + " from " + duration_text(from) + " to " + duration_text(to));
  }
  if (below != 0) {
    const double top = y.at(static_cast<double>(below));
    picture.rect(62, top, 26, kPlot - top, style("fill", kRed),
                 std::to_string(below) + " not above zero");
    picture.text(75, kPlot + 18, "middle", "≤ 0", style("fill", kRed));
  }
  return picture.done(title);
}

std::string plot_memory(const ReportRun& run) {
  const Axis x = time_axis(run);
  constexpr double kPlot = 180;
  Picture picture(kWidth, kPlot + 28);
  std::map<std::uint32_t, std::vector<std::pair<double, double>>> clients;
  double most = 1;
  for (const Record& record : *run.records) {
    if (record.kind != Kind::counted || record.text == "closed") continue;
    const double mib = static_cast<double>(record.until.count()) / 1024 / 1024;
    most = std::max(most, mib);
    clients[record.client].emplace_back(since_begin(run, record.at), mib);
  }
  const Axis y{0, most * 1.08, kPlot, 12, false};
  draw_axes(picture, x, y, true, false);
  for (const auto& [client, points] : clients) {
    std::vector<std::pair<double, double>> path;
    // Memory is counted every second, and the plot needs only a few hundred points.
    const std::size_t every = std::max<std::size_t>(1, points.size() / 400);
    for (std::size_t i = 0; i < points.size(); i += every) {
      path.emplace_back(x.at(points[i].first), y.at(points[i].second));
    }
    picture.path(path, style("stroke", kBlue, "stroke-width:1.2;stroke-opacity:0.5"),
                 "client " + std::to_string(client) + ": " + number(points.front().second) +
                     " MiB at first, " + number(points.back().second) + " MiB at last");
  }
  return picture.done("resident memory of each client over time, MiB");
}

}  // namespace baton::chaos
