#include "chaos/cluster/report.h"

#include "chaos/cluster/report_plots.h"
#include "chaos/cluster/report_svg.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <stdexcept>

namespace baton::chaos {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: #22211f;
  background: #faf9f7; max-width: 1080px; margin: 0 auto; padding: 24px 20px 64px; }
h1 { font-size: 26px; margin: 8px 0 4px; } h2 { font-size: 21px; margin: 44px 0 8px; }
h3 { font-size: 15px; margin: 26px 0 6px; }
p { margin: 4px 0 10px; color: #55524c; max-width: 76ch; }
table { border-collapse: collapse; margin: 8px 0; font-variant-numeric: tabular-nums; }
th, td { text-align: left; overflow-wrap: normal; padding: 4px 18px 4px 0; border-bottom: 1px solid #e6e4df;
  vertical-align: top; }
th { font-weight: 600; color: #55524c; white-space: nowrap; } td.n, th.n { text-align: right; }
.ok { color: #1e7a45; font-weight: 600; } .bad { color: #b3261e; font-weight: 600; }
.words { font-size: 13px; color: #55524c; }
svg { width: 100%; height: auto; background: #fff; border: 1px solid #e6e4df; border-radius: 6px; }
svg text { font: 11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #55524c; }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 20px; }
@media (max-width: 720px) { .two { grid-template-columns: 1fr; } }
)";

struct Summary {
  double minutes = 0;
  std::size_t faults = 0, processes = 0, violations = 0, excused = 0;
  std::map<std::string, std::size_t> kinds;
};

Summary summary_of(const ReportRun& run) {
  Summary summary;
  const auto& records = *run.records;
  if (!records.empty()) {
    summary.minutes =
        std::chrono::duration<double, std::ratio<60>>(records.back().at - records.front().at)
            .count();
  }
  for (const Record& record : records) {
    if (record.kind == Kind::start) ++summary.processes;
    if (record.kind != Kind::fault) continue;
    ++summary.faults;
    ++summary.kinds[fault_kind(record.text)];
  }
  for (const Findings& findings : run.verdict->findings) {
    summary.violations += findings.violations;
    summary.excused += findings.excused;
  }
  return summary;
}

std::string cell(const std::string& text, std::string_view kind = {}) {
  return kind.empty() ? "<td>" + escaped(text) + "</td>"
                      : "<td class=\"" + std::string(kind) + "\">" + escaped(text) + "</td>";
}

std::string row(const std::string& name, const std::string& text) {
  return "<tr><th>" + escaped(name) + "</th>" + cell(text) + "</tr>\n";
}

std::string percentiles(const std::vector<double>& sorted) {
  if (sorted.empty()) return "none";
  return "least " + duration_text(sorted.front()) + ", median " +
         duration_text(share_of(sorted, 0.5)) + ", 99 % " + duration_text(share_of(sorted, 0.99)) +
         ", greatest " + duration_text(sorted.back()) + "; " + std::to_string(sorted.size()) +
         " in all";
}

std::string summary_table(const std::vector<ReportRun>& runs) {
  std::string html =
      "<table>\n<tr><th>store</th><th class=\"n\">seed</th><th class=\"n\">minutes</th>"
      "<th class=\"n\">faults</th><th class=\"n\">client processes</th><th class=\"n\">grants</th>"
      "<th class=\"n\">violations</th></tr>\n";
  for (const ReportRun& run : runs) {
    const Summary summary = summary_of(run);
    html += "<tr>" + cell(run.store) + cell(std::to_string(run.seed), "n") +
            cell(number(summary.minutes), "n") + cell(std::to_string(summary.faults), "n") +
            cell(std::to_string(summary.processes), "n") +
            cell(std::to_string(run.verdict->grants), "n") +
            cell(std::to_string(summary.violations), summary.violations == 0 ? "n ok" : "n bad") +
            "</tr>\n";
  }
  return html + "</table>\n";
}

std::string checkers_table(const Verdict& verdict) {
  std::string html =
      "<table>\n<tr><th>checker</th><th class=\"n\">judged</th><th class=\"n\">violations</th>"
      "<th class=\"n\">excused</th><th></th></tr>\n";
  for (std::size_t i = 0; i < kCheckers; ++i) {
    const Findings& findings = verdict.findings[i];
    std::string words;
    for (const std::string& each : findings.first) words += escaped(each) + "<br>";
    html += "<tr>" + cell(std::string(name_of(static_cast<Checker>(i)))) +
            cell(std::to_string(findings.judged), "n") +
            cell(std::to_string(findings.violations), findings.violations == 0 ? "n ok" : "n bad") +
            cell(std::to_string(findings.excused), "n") + "<td class=\"words\">" + words +
            "</td></tr>\n";
  }
  return html + "</table>\n";
}

std::string section(const ReportRun& run) {
  const Summary summary = summary_of(run);
  const auto handovers = values_of(run.verdict->handovers);
  const auto margins = values_of(run.verdict->margins);
  std::string kinds;
  for (const auto& [kind, count] : summary.kinds) {
    kinds += (kinds.empty() ? "" : ", ") + std::to_string(count) + " " + kind;
  }
  std::string html = "<h2>" + escaped(run.store) + "</h2>\n<table>\n";
  for (const auto& [name, text] : run.facts) html += row(name, text);
  html += row("faults by kind", kinds.empty() ? "none" : kinds);
  html += row("hand-over", percentiles(handovers));
  html += row("loss margin", percentiles(margins));
  html += "</table>\n<h3>What the checkers say</h3>\n" + checkers_table(*run.verdict);
  html += "<h3>Grants per second, and the faults</h3>\n" + plot_grants(run);
  html +=
      "<h3>Hand-over</h3>\n<p>From the release or the loss of a lock to the next grant, for those "
      "who waited already. After a kill or a cut the store waits for the end of the session "
      "first.</p>\n" +
      plot_handovers(run);
  html += "<div class=\"two\"><div><h3>Hand-over, how often</h3>\n" +
          plot_histogram(handovers, "distribution of hand-over latency") +
          "</div><div><h3>Loss margin, how often</h3>\n" +
          plot_histogram(margins, "distribution of the loss margin") + "</div></div>\n";
  html +=
      "<p>Loss margin: from the moment a holder stopped believing in its lock (or would have, had "
      "it not been killed) to the first sign that the store had freed it. It must be above zero, "
      "but for what the checkers excuse."
      "</p>\n";
  html += "<h3>Resident memory of each client process, MiB</h3>\n" + plot_memory(run);
  return html;
}

}  // namespace

std::string fault_kind(const std::string& text) {
  std::string kind;
  std::size_t from = 0;
  while (from < text.size()) {
    const std::size_t space = std::min(text.find(' ', from), text.size());
    const std::string word = text.substr(from, space - from);
    if (word.find_first_of("0123456789") != std::string::npos) break;
    if (!word.empty()) kind += (kind.empty() ? "" : " ") + word;
    from = space + 1;
  }
  return kind.empty() ? "fault" : kind;
}

std::string report_html(const std::string& title, const std::vector<ReportRun>& runs) {
  std::string html =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
      escaped(title) + "</title>\n<style>" + std::string(kStyle) + "</style>\n</head>\n<body>\n";
  html += "<h1>" + escaped(title) + "</h1>\n";
  html += summary_table(runs);
  for (const ReportRun& run : runs) html += section(run);
  return html + "</body>\n</html>\n";
}

void write_report(const std::string& path, const std::string& title,
                  const std::vector<ReportRun>& runs) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << report_html(title, runs);
  out.flush();
  if (!out) throw std::runtime_error("cannot write the report " + path);
}

}  // namespace baton::chaos
