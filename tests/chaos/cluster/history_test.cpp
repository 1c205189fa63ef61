// Tests how records are written to a history and read back, and how broken lines are reported.
#include "chaos/cluster/history.h"

#include "support/temp_dir.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace baton::chaos {
namespace {

using std::chrono::nanoseconds;

constexpr int kKinds = static_cast<int>(Kind::leftover) + 1;

bool same(const Record& a, const Record& b) {
  return a.at == b.at && a.client == b.client && a.kind == b.kind && a.op == b.op &&
         a.lock == b.lock && a.token == b.token && a.until == b.until && a.value == b.value &&
         a.text == b.text;
}

TEST(HistoryLine, OfEveryKindIsReadAsItWasWritten) {
  for (int kind = 0; kind < kKinds; ++kind) {
    for (const char* text : {"", "kill leader 2", " spaces  stay "}) {
      const Record record{nanoseconds(123'456'789'012),
                          7,
                          static_cast<Kind>(kind),
                          42,
                          3,
                          std::numeric_limits<std::uint64_t>::max(),
                          nanoseconds::max(),
                          std::numeric_limits<std::uint64_t>::max(),
                          text};
      const auto read = from_line(to_line(record));
      ASSERT_TRUE(read) << to_line(record);
      EXPECT_TRUE(same(*read, record)) << to_line(record) << to_line(*read);
    }
  }
}

TEST(HistoryLine, HasTheFormThatTheHeaderSays) {
  EXPECT_EQ(to_line({nanoseconds(5), 1, Kind::asked, 2, 3, 4, nanoseconds(6), 7, {}}),
            "5 1 asked 2 3 4 6 7\n");
  EXPECT_EQ(to_line({nanoseconds(5), 0, Kind::fault, 2, 0, 0, {}, 0, "cut\none way"}),
            "5 0 fault 2 0 0 0 0 cut one way\n");
}

TEST(HistoryLine, CutOffAnywhereIsNoRecord) {
  const auto line =
      to_line({nanoseconds(55), 11, Kind::fault, 22, 3, 44, nanoseconds(66), 77, "cut"});
  for (std::size_t length = 0; length < line.size(); ++length) {
    EXPECT_FALSE(from_line(line.substr(0, length))) << length;
  }
}

TEST(HistoryLine, WithNonsenseInItIsNoRecord) {
  for (const char* line : {"\n", "x 1 asked 2 3 4 6 7\n", "5 -1 asked 2 3 4 6 7\n",
                           "5 1 nothing 2 3 4 6 7\n", "5 1 asked 2 3 4 6\n", "5 1 asked 2  4 6 7\n",
                           "5 1 asked 2 3 4 6 7x\n", "5 1 asked 2 3 99999999999999999999 6 7\n"}) {
    EXPECT_FALSE(from_line(line)) << line;
  }
}

TEST(HistoryFile, OfSeveralThreadsLosesAndTearsNothing) {
  const test::TempDir dir;
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  {
    const HistoryWriter writer(dir.path() + "/client9.history", 9);
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&writer, i] {
        for (int k = 0; k < kEach; ++k) {
          Record record;
          record.at = nanoseconds(k);
          record.op = static_cast<std::uint64_t>(k);
          record.lock = static_cast<std::uint32_t>(i);
          writer.write(record);
        }
      });
    }
  }
  std::vector<Damage> damage;
  const auto records = read_histories(dir.path(), &damage);
  EXPECT_TRUE(damage.empty());
  ASSERT_EQ(records.size(), static_cast<std::size_t>(kThreads * kEach));
  std::vector<int> next(kThreads, 0);
  for (const Record& record : records) {
    EXPECT_EQ(record.client, 9U);
    EXPECT_EQ(static_cast<int>(record.op), next.at(record.lock)++);
  }
}

TEST(HistoryFile, RecordsOfAllFilesComeSortedByTimeAndStableWithinAFile) {
  const test::TempDir dir;
  const HistoryWriter one(dir.path() + "/client1.history", 1);
  const HistoryWriter two(dir.path() + "/client2.history", 2);
  one.write({nanoseconds(30), 0, Kind::release, 1, 0, 0, {}, 0, {}});
  one.write({nanoseconds(10), 0, Kind::asked, 1, 0, 0, {}, 0, {}});
  two.write({nanoseconds(20), 0, Kind::granted, 1, 0, 0, {}, 0, {}});
  two.write({nanoseconds(20), 0, Kind::valid, 1, 0, 0, {}, 0, {}});
  std::ofstream(dir.path() + "/notes.txt") << "not a history\n";
  const auto records = read_histories(dir.path());
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[0].kind, Kind::asked);
  EXPECT_EQ(records[1].kind, Kind::granted);
  EXPECT_EQ(records[2].kind, Kind::valid);
  EXPECT_EQ(records[3].kind, Kind::release);
}

TEST(HistoryFile, TellsOfBrokenLinesAndKeepsTheOthers) {
  const test::TempDir dir;
  {
    std::ofstream out(dir.path() + "/client3.history");
    out << "1 3 start 0 0 0 0 0\nnonsense\n2 3 asked 1 0 0 0 0\n3 3 gran";
  }
  std::vector<Damage> damage;
  EXPECT_EQ(read_histories(dir.path(), &damage).size(), 2U);
  ASSERT_EQ(damage.size(), 2U);
  EXPECT_EQ(damage[0].file, "client3.history");
  EXPECT_EQ(damage[0].line, 2U);
  EXPECT_EQ(damage[0].client, 3U);
  EXPECT_FALSE(damage[0].cut_off);
  EXPECT_EQ(damage[1].line, 4U);
  EXPECT_TRUE(damage[1].cut_off);
}

TEST(HistoryFile, ThatCannotBeWrittenThrows) {
  EXPECT_THROW(HistoryWriter("/nonexistent/x.history", 1), std::runtime_error);
  const HistoryWriter full("/dev/full", 1);
  EXPECT_THROW(full.write({}), std::runtime_error);
}

}  // namespace
}  // namespace baton::chaos
