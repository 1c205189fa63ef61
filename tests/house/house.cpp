// Checks the source tree: which files may include which, the length of files, the names of
// tests, and that docs/guarantees.md names tests that exist.
#include "rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

namespace baton::house {
namespace {

const std::vector<std::string> kCode{".h", ".cpp"};

// The layers of src/common, from the lowest to the highest. A file may include its own layer and
// those below it.
const std::vector<std::string> kLayers{"src/common/base", "src/common/seam", "src/common/recipe",
                                       "src/common/client", "src/common/api"};
// The only layers of src/common that a store may include.
const std::set<std::string> kBelowTheStores{"src/common/base", "src/common/seam"};

// The third-party headers that each room may include, besides the C++ and POSIX headers. A room is
// a folder of the source tree; see room_of().
const std::map<std::string, std::vector<std::string>> kThirdParty{
    {"include", {}},
    {"src/common/base", {"spdlog/"}},
    {"src/common/seam", {}},
    {"src/common/recipe", {}},
    {"src/common/client", {}},
    {"src/common/api", {}},
    {"src/memory", {}},
    {"src/file", {}},
    {"src/zk", {"zookeeper/"}},
    {"src/etcd", {"grpc/", "grpcpp/", "google/protobuf/", "openssl/"}},
    {"src/connect", {}},
    {"src/cli", {"CLI/", "nlohmann/", "spdlog/"}}};

bool starts_with_any(const std::string& text, const std::vector<std::string>& all) {
  return std::any_of(all.begin(), all.end(), [&](const auto& p) { return text.starts_with(p); });
}

// The name of a C++ standard header has no dot and no slash.
bool is_std(const std::string& target) { return target.find_first_of("./") == target.npos; }

bool is_system(const std::string& target) {
  static const std::vector<std::string> kFolders{"sys/", "linux/", "arpa/", "netinet/"};
  static const std::set<std::string> kPosix{
      "fcntl.h",  "poll.h",   "pthread.h", "signal.h", "unistd.h",  "errno.h",  "time.h",
      "limits.h", "stdlib.h", "string.h",  "stdio.h",  "termios.h", "dirent.h", "pwd.h",
      "spawn.h",  "sched.h",  "stdint.h",  "netdb.h",  "pty.h",     "stddef.h"};
  return starts_with_any(target, kFolders) || kPosix.contains(target);
}

bool is_ours(const std::string& target) {
  static const std::vector<std::string> kRooms{"common/", "memory/",  "file/", "zk/",
                                               "etcd/",   "connect/", "cli/",  "baton/"};
  return starts_with_any(target, kRooms);
}

// The reason why a file of `room` may not have this include. Empty: it may have it.
std::string objection(const std::string& room, const Include& include) {
  const auto& target = include.target;
  const auto third = kThirdParty.find(room);
  if (third == kThirdParty.end()) return "unknown room " + room;
  if (room == "include") {
    if (is_std(target) || target.starts_with("baton/")) return "";
    if (include.file.filename() == "spdlog.h" && target == "spdlog/spdlog.h") return "";
    return "public headers include std alone";
  }
  if (is_std(target) || is_system(target) || target.starts_with("baton/")) return "";
  if (starts_with_any(target, third->second)) return "";
  if (target.find('/') == target.npos) {
    const bool neighbour = std::filesystem::exists(top() / include.file.parent_path() / target);
    return neighbour ? "" : "neither of this room nor of the system";
  }
  if (!is_ours(target)) return "third party of another room";
  const auto other = room_of("src/" + target);
  if (!kThirdParty.contains(other)) return "includes an unknown room, " + other;
  if (room == other || room == "src/connect") return "";
  const auto own_layer = std::find(kLayers.begin(), kLayers.end(), room);
  if (own_layer != kLayers.end()) {
    return std::find(kLayers.begin(), own_layer, other) != own_layer ? "" : "includes go downwards";
  }
  if (room == "src/cli") return "the command uses the public headers alone";
  if (!other.starts_with("src/common/")) return "stores do not know their siblings";
  return kBelowTheStores.contains(other) ? "" : "stores stay below the recipe";
}

TEST(House, IncludesFollowTheTable) {
  std::size_t seen = 0;
  for (const char* folder : {"include", "src"}) {
    for (const auto& file : files_under(folder, kCode)) {
      for (const auto& include : includes_of(file)) {
        ++seen;
        const auto why = objection(room_of(file), include);
        EXPECT_EQ(why, "") << file.string() << ":" << include.line << " includes "
                           << include.target;
      }
    }
  }
  EXPECT_GT(seen, 100u) << "nothing was read";
}

// Checks objection() itself: it must refuse includes that the table forbids.
TEST(House, TheTableBites) {
  const auto asks = [](const std::string& room, const std::string& target) {
    return objection(room, {"x.h", 1, target}) != "";
  };
  EXPECT_TRUE(asks("include", "spdlog/spdlog.h"));
  EXPECT_TRUE(asks("include", "unistd.h"));
  EXPECT_TRUE(asks("include", "common/client/hold.h"));
  EXPECT_TRUE(asks("src/common/client", "file/backend.h"));
  EXPECT_TRUE(asks("src/common/client", "common/api/x.h"));
  EXPECT_TRUE(asks("src/common/base", "common/seam/session.h"));
  EXPECT_TRUE(asks("src/common/seam", "common/recipe/queue_rule.h"));
  EXPECT_TRUE(asks("src/common/client", "grpcpp/grpcpp.h"));
  EXPECT_TRUE(asks("src/common/client", "spdlog/spdlog.h"));
  for (const char* store : {"src/memory", "src/file", "src/zk", "src/etcd"}) {
    EXPECT_TRUE(asks(store, "common/recipe/queue_rule.h")) << store;
    EXPECT_TRUE(asks(store, "common/client/hold.h")) << store;
    EXPECT_TRUE(asks(store, "common/api/x.h")) << store;
    EXPECT_TRUE(asks(store, "common/hold.h")) << store;
    EXPECT_FALSE(asks(store, "common/seam/session.h")) << store;
    EXPECT_FALSE(asks(store, "common/base/loop.h")) << store;
  }
  EXPECT_TRUE(asks("src/file", "memory/backend.h"));
  EXPECT_TRUE(asks("src/file", "spdlog/spdlog.h"));
  EXPECT_TRUE(asks("src/cli", "common/client/client_impl.h"));
  EXPECT_TRUE(asks("src/zk", "nlohmann/json.hpp"));
  EXPECT_TRUE(asks("src/etcd", "zookeeper/zookeeper.h"));
  EXPECT_TRUE(asks("src/zk", "openssl/ssl.h"));
  EXPECT_FALSE(asks("include", "vector"));
  EXPECT_FALSE(asks("include", "baton/lock.h"));
  EXPECT_FALSE(asks("src/common/recipe", "common/seam/ticket.h"));
  EXPECT_FALSE(asks("src/common/api", "common/client/hold.h"));
  EXPECT_FALSE(asks("src/etcd", "grpcpp/channel.h"));
  EXPECT_FALSE(asks("src/connect", "file/backend.h"));
  EXPECT_FALSE(asks("src/cli", "CLI/CLI.hpp"));
}

// A file that is in no list is not compiled or not installed, and no other check reports that.
TEST(House, EverySourceIsInTheListOfItsRoom) {
  std::istringstream lines(text_of(BATON_SOURCES_FILE));
  std::set<std::string> listed;
  for (std::string line; std::getline(lines, line);) listed.insert(line);
  for (const auto& file : files_under("src", {".cpp"})) {
    if (room_of(file) == "src/cli") continue;
    EXPECT_TRUE(listed.contains((top() / file).string())) << file.string();
  }
  for (const auto& file : files_under("include", {".h"})) {
    EXPECT_TRUE(listed.contains((top() / file).string())) << file.string();
  }
}

TEST(House, NoFileHasMoreThan400Lines) {
  for (const char* folder : {"include", "src", "tests"}) {
    for (const auto& file : files_under(folder, kCode)) {
      const auto text = text_of(file);
      EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 400) << file.string();
    }
  }
}

TEST(House, NothingSleepsOutsideTheCommand) {
  static const std::regex kSleep(
      R"(\b(sleep_for|sleep_until|usleep|nanosleep|clock_nanosleep|sleep)\s*\()");
  for (const char* folder : {"include", "src"}) {
    for (const auto& file : files_under(folder, kCode)) {
      if (room_of(file) == "src/cli") continue;
      EXPECT_FALSE(std::regex_search(code_of(text_of(file)), kSleep)) << file.string();
    }
  }
  EXPECT_TRUE(std::regex_search(code_of("std::this_thread::sleep_for(1ms);"), kSleep));
  EXPECT_FALSE(std::regex_search(code_of("// sleep_for(1)\nf(\"sleep(1)\");"), kSleep));
}

// Deadlines must be measured by CLOCK_BOOTTIME. The wall clock can be set, and the monotonic clock
// stops while the computer sleeps.
TEST(House, LeasesCountOnTheBootClock) {
  for (const char* file :
       {"src/common/seam/lease.cpp", "src/common/seam/lease.h", "src/common/base/clock.h"}) {
    const auto code = code_of(text_of(file));
    EXPECT_EQ(code.find("steady_clock"), code.npos) << file;
    EXPECT_EQ(code.find("system_clock"), code.npos) << file;
  }
  EXPECT_NE(text_of("src/common/base/clock.cpp").find("CLOCK_BOOTTIME"), std::string::npos);
}

TEST(House, EveryGuaranteeNamesTestsThatExist) {
  const auto text = text_of("docs/guarantees.md");
  ASSERT_FALSE(text.empty()) << "docs/guarantees.md is missing";
  static const std::regex kRow(R"(^\W*(G\d+)\b)");
  const auto tests = tests_in_sources();
  std::istringstream lines(text);
  std::set<std::string> numbers;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_search(line, match, kRow)) continue;
    EXPECT_TRUE(numbers.insert(match[1]).second) << match[1] << " stands twice";
    const auto named = tests_named_in(line);
    EXPECT_FALSE(named.empty()) << match[1] << " names no test";
    for (const auto& name : named) {
      EXPECT_TRUE(tests.contains(name)) << match[1] << " names " << name << ", which is no test";
    }
  }
  EXPECT_GE(numbers.size(), 12u) << "the contract has twelve promises";
}

TEST(House, TestNamesAreSentences) {
  for (const auto& name : tests_in_sources()) {
    // A disabled test is a part of another test, which runs it in a separate process.
    if (name.find(".DISABLED_") != name.npos) continue;
    EXPECT_EQ(name.find('_'), name.npos) << name;
  }
  EXPECT_GT(tests_in_sources().size(), 200u);
}

TEST(House, ConformanceKnowsPublicHeadersOnly) {
  for (const auto& file : files_under("tests/conformance", kCode)) {
    for (const auto& include : includes_of(file)) {
      const auto& t = include.target;
      const bool internal = t.starts_with("common/") || t.starts_with("file/") ||
                            t.starts_with("memory/") || t.starts_with("zk/") ||
                            t.starts_with("etcd/");
      EXPECT_FALSE(internal) << file.string() << ":" << include.line;
    }
  }
}

// A test case may skip only through BATON_NEEDS, which reads the table in rig.cpp.
TEST(House, ConformanceSkipsByItsTableOnly) {
  for (const auto& file : files_under("tests/conformance", kCode)) {
    if (file.filename() == "fixture.h") continue;
    const auto code = code_of(text_of(file));
    EXPECT_EQ(code.find("GTEST_SKIP"), code.npos) << file.string();
    EXPECT_EQ(code.find("DISABLED_"), code.npos) << file.string();
  }
}

}  // namespace
}  // namespace baton::house
