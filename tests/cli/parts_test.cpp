// The parts of the command line tool that need no store.
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "held.h"
#include "json.h"
#include "store.h"
#include "support/fixture.h"
#include "text.h"
#include "zk_server.h"

namespace baton::cli::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

TEST(Text, DurationsAreReadAsPeopleWriteThem) {
  EXPECT_EQ(parse_duration("30s"), milliseconds(30'000));
  EXPECT_EQ(parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(parse_duration("2m"), milliseconds(120'000));
  EXPECT_EQ(parse_duration("1h"), milliseconds(3'600'000));
  EXPECT_EQ(parse_duration("1.5s"), milliseconds(1'500));
  EXPECT_EQ(parse_duration("7"), milliseconds(7'000));
  EXPECT_EQ(parse_duration("0"), milliseconds(0));
  EXPECT_EQ(parse_duration("0.1ms"), milliseconds(1)) << "more than nothing is not nothing";
}

TEST(Text, OtherTextIsNoDuration) {
  for (const char* text : {"", "s", ".5s", "5.s", "-1s", "+1s", "1 s", " 1s", "1s ", "1d", "1e3",
                           "0x10", "1.2.3s", "1S", "99999999999999999999h", "inf", "nan"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(Text, ControlBytesCannotReachTheTerminal) {
  EXPECT_EQ(escape_controls("plain ünï ✓"), "plain ünï ✓");
  EXPECT_EQ(escape_controls("\x1b[2J\n\x7f"), "\\x1b[2J\\x0a\\x7f");
  EXPECT_EQ(escape_controls("\xc2\x9b"
                            "31m"),
            "\\xc2\\x9b31m")
      << "C1 is a control too";
  EXPECT_EQ(escape_controls("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(escape_controls(std::string_view("\0", 1)), "\\x00");
}

TEST(Text, AgesAreShort) {
  EXPECT_EQ(format_duration(milliseconds(250)), "250ms");
  EXPECT_EQ(format_duration(milliseconds(192'000)), "3m12s");
  EXPECT_EQ(format_duration(milliseconds(7'500'000)), "2h05m");
  EXPECT_EQ(format_since({}, system_clock::now()), "unknown");
}

TEST(Text, TimesAtTheEndsOfTheClockCanBeShown) {
  for (const auto t : {system_clock::time_point::min(), system_clock::time_point::max()}) {
    EXPECT_EQ(format_utc(t).size(), std::string("2026-01-02T03:04:05.678Z").size());
    EXPECT_NE(format_since(t, system_clock::now()).find('('), std::string::npos);
  }
  EXPECT_EQ(format_since(system_clock::time_point::min(), system_clock::now()).find("now"),
            std::string::npos);
}

TEST(Text, ColumnsAreAlignedByCharacters) {
  EXPECT_EQ(format_table({{"ü", "b"}, {"aa", "c"}}), "ü   b\naa  c\n");
}

TEST(JsonShape, SinceIsRfc3339OrNull) {
  const auto t = system_clock::time_point(std::chrono::milliseconds(1'767'323'045'678));
  const LockSnapshot snapshot{"a/b", {{"id-1", "me", 7, t}, {"id-2", "bad \xff", 8, {}}}};
  EXPECT_EQ(
      dump(to_json(snapshot)),
      "{\"name\":\"a/b\",\"entries\":[{\"id\":\"id-1\",\"label\":\"me\",\"token\":7,"
      "\"since\":\"2026-01-02T03:04:05.678Z\"},{\"id\":\"id-2\",\"label\":\"bad \xef\xbf\xbd\","
      "\"token\":8,\"since\":null}]}");
}

TEST(Held, RemembersLocksOfAncestorsByNameAndStore) {
  unsetenv("BATON_HELD");
  add_held({"a", 1, "file:///x y"});
  add_held({"a", 5, "file:///x y"});
  add_held({"a", 2, "zk://h/r"});
  EXPECT_EQ(held_tokens("a", "file:///x y"), (std::vector<std::uint64_t>{1, 5}));
  EXPECT_EQ(held_tokens("a", "zk://h/r"), (std::vector<std::uint64_t>{2}));
  EXPECT_TRUE(held_tokens("b", "zk://h/r").empty());
  unsetenv("BATON_HELD");
}

TEST(Held, OneDirectoryIsOneStoreHoweverItIsWritten) {
  const auto base = std::filesystem::temp_directory_path().string();
  const std::string plain = store_identity("file://" + base + "/baton-none");
  EXPECT_EQ(store_identity("file://" + base + "/baton-none/"), plain);
  EXPECT_EQ(store_identity("file://" + base + "/./x/../baton%2Dnone"), plain);
  EXPECT_NE(store_identity("file://" + base + "/baton-other"), plain);
  EXPECT_EQ(store_identity("file://" + base + "/baton-none?token_base=5"), plain);
  EXPECT_EQ(store_identity("zk://h:1/app?token_base=5"), store_identity("zk://h:1/app"));
}

TEST(ZkServer, SaysVersionAndMode) {
  const auto facts = parse_srvr(
      "Zookeeper version: 3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on 2022-02-25\n"
      "Latency min/avg/max: 0/1.5/9\nMode: follower\nNode count: 5\n");
  EXPECT_EQ(facts.version, "3.8.0");
  EXPECT_EQ(facts.mode, "follower");
  EXPECT_EQ(parse_srvr("srvr is not executed because it is not in the whitelist.\n").version, "");
  EXPECT_EQ(ask_zk_server("127.0.0.1:1").version, "");
  EXPECT_EQ(ask_zk_server("nonsense").version, "");
}

class DefaultStore : public CliTest {};

// Runs in a child process of another user, because root's default store is a directory for the
// whole machine.
TEST_F(DefaultStore, IsMadeForItsOwnerAlone) {
  const bool owned = geteuid() != 0 || chown(directory().c_str(), 65'534, 65'534) == 0;
  ASSERT_TRUE(owned);
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setuid(65'534) != 0) _exit(2);
    setenv("XDG_STATE_HOME", (directory() + "/deep/state").c_str(), 1);
    const std::string first = store_url({});
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", directory().c_str(), 1);
    const std::string second = store_url({});
    const bool right = first == "file://" + directory() + "/deep/state/baton" &&
                       second == "file://" + directory() + "/.local/state/baton";
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  struct stat info {};
  ASSERT_EQ(stat((directory() + "/deep/state/baton").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700U);
}

}  // namespace
}  // namespace baton::cli::test
