// Tests the report: its sections, its plots, and the violations that it describes.
#include "chaos/cluster/report.h"

#include "chaos/cluster/story.h"
#include "support/temp_dir.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace baton::chaos {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// A run with two holds, a fault, and memory measurements.
std::vector<Record> a_run() {
  std::vector<Record> records;
  const auto add = [&](std::int64_t ms, std::uint32_t client, Kind kind, std::uint64_t op,
                       std::uint64_t token, std::int64_t until, const std::string& text) {
    records.push_back(
        {story_time(ms), client, kind, op, 0, token, std::chrono::nanoseconds(until), 0, text});
  };
  add(0, 0, Kind::fault, 1, 0, 0, "pause leader 2 for <4000> ms");
  add(1, 1, Kind::asked, 1, 0, 0, "");
  add(2, 1, Kind::granted, 1, 100, 0, "");
  add(2, 1, Kind::valid, 1, 100, story_time(50).count(), "");
  add(3, 2, Kind::asked, 1, 0, 0, "");
  add(30, 1, Kind::release, 1, 100, 0, "");
  add(35, 2, Kind::granted, 1, 200, 0, "");
  add(35, 2, Kind::valid, 1, 200, story_time(60).count(), "");
  add(40, 2, Kind::release, 1, 200, 0, "");
  add(900, 0, Kind::healed, 1, 0, 0, "");
  add(2000, 1, Kind::counted, 0, 9, 30 << 20, "running");
  add(3000, 1, Kind::counted, 0, 9, 31 << 20, "running");
  return records;
}

TEST(Report, HasASectionWithAllPlotsForEachRunAndNothingFromOutside) {
  const auto records = a_run();
  const auto verdict = judge(records);
  const auto html = report_html("soak", {{"zk 3.8.0", 7, &records, &verdict, {{"clients", "16"}}},
                                         {"etcd 3.4.23", 7, &records, &verdict, {}}});
  EXPECT_EQ(count(html, "<svg"), 10U);
  EXPECT_EQ(count(html, "</svg>"), 10U);
  EXPECT_EQ(count(html, "<h2>zk 3.8.0</h2>"), 1U);
  EXPECT_EQ(count(html, "<h2>etcd 3.4.23</h2>"), 1U);
  EXPECT_NE(html.find("1 pause leader"), std::string::npos);
  EXPECT_NE(html.find("5 ms; 1 in all"), std::string::npos) << "the one hand-over";
  EXPECT_NE(html.find("2 for &lt;4000&gt; ms, 0 s to 0.9 s"), std::string::npos) << "the hover";
  for (const char* outside : {"http:", "https:", "<script", "src=", "@import", "url("}) {
    EXPECT_EQ(count(html, outside), 0U) << outside;
  }
  EXPECT_EQ(html.find("nan"), std::string::npos);
}

TEST(Report, TellsViolationsInWords) {
  auto records = a_run();
  records[7].token = records[6].token = records[8].token = 50;  // less than the first token
  const auto verdict = judge(records);
  const auto html = report_html("soak", {{"zk", 7, &records, &verdict, {}}});
  EXPECT_NE(html.find("client 2 op 1 (lock 0, token 50) was valid"), std::string::npos);
  EXPECT_NE(html.find("n bad"), std::string::npos);
}

TEST(Report, OfARunInWhichNothingHappenedIsWrittenToo) {
  const test::TempDir dir;
  const std::vector<Record> none;
  const auto verdict = judge(none);
  const std::string path = dir.path() + "/report.html";
  write_report(path, "soak", {{"zk", 7, &none, &verdict, {}}});
  std::ifstream in(path);
  const std::string html{std::istreambuf_iterator<char>(in), {}};
  EXPECT_NE(html.find("nothing was ever granted"), std::string::npos);
  EXPECT_THROW(write_report(dir.path() + "/none/report.html", "soak", {}), std::runtime_error);
}

TEST(Report, NamesAKindOfFaultByItsWordsBeforeTheFirstNumber) {
  EXPECT_EQ(fault_kind("pause leader 2 for 4000 ms"), "pause leader");
  EXPECT_EQ(fault_kind("evict waiter of lock2"), "evict waiter of");
  EXPECT_EQ(fault_kind("quorum lost"), "quorum lost");
  EXPECT_EQ(fault_kind("2"), "fault");
}

}  // namespace
}  // namespace baton::chaos
