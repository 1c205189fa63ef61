// The server bugs that `baton doctor` warns of. Each bug is tested with the last release that has
// it and the first release that has the fix.
#include "server_bugs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace baton::cli::test {
namespace {

bool warns(std::string_view backend, std::string_view version, std::string_view of) {
  const auto bugs = known_bugs(backend, version);
  return std::any_of(bugs.begin(), bugs.end(),
                     [&](const auto& bug) { return bug.find(of) != std::string::npos; });
}

TEST(ServerBugs, NothingIsSaidOfAnUnknownVersion) {
  EXPECT_TRUE(known_bugs("etcd", "").empty());
  EXPECT_TRUE(known_bugs("etcd", "not a version").empty());
  EXPECT_TRUE(known_bugs("zk", "").empty());
  EXPECT_TRUE(known_bugs("file", "").empty());
}

// last: the last release that has the bug. first: the first release that has the fix.
TEST(ServerBugs, EveryBugOfEtcdEndsWithItsFix) {
  struct Fix {
    const char* bug;
    const char* last;
    const char* first;
  };
  for (const Fix& fix :
       {Fix{"etcd#13766", "3.5.2", "3.5.3"}, Fix{"etcd#15271", "3.4.24", "3.4.25"},
        Fix{"etcd#15271", "3.5.7", "3.5.8"}, Fix{"etcd#17529", "3.4.30", "3.4.31"},
        Fix{"etcd#17529", "3.5.12", "3.5.13"}, Fix{"etcd#17780", "3.4.31", "3.4.32"},
        Fix{"etcd#17780", "3.5.13", "3.5.14"}, Fix{"etcd#18089", "3.4.33", "3.4.34"},
        Fix{"etcd#18089", "3.5.15", "3.5.16"}, Fix{"etcd#19179", "3.4.35", "3.4.36"},
        Fix{"etcd#19179", "3.5.17", "3.5.18"}, Fix{"etcd#20590", "3.4.37", "3.4.38"},
        Fix{"etcd#20590", "3.5.22", "3.5.23"}, Fix{"etcd#20590", "3.6.4", "3.6.5"},
        Fix{"etcd#20418", "3.4.41", "3.4.42"}, Fix{"etcd#20418", "3.5.27", "3.5.28"},
        Fix{"etcd#20418", "3.6.8", "3.6.9"}}) {
    const std::string line(fix.first, 4);  // "3.5."
    EXPECT_TRUE(warns("etcd", fix.last, fix.bug)) << fix.bug << " in " << fix.last;
    EXPECT_TRUE(warns("etcd", line + "0", fix.bug)) << fix.bug << " in " << line << "0";
    EXPECT_FALSE(warns("etcd", fix.first, fix.bug)) << fix.bug << " in " << fix.first;
    EXPECT_FALSE(warns("etcd", line + "99", fix.bug)) << fix.bug << " in " << line << "99";
    EXPECT_FALSE(warns("etcd", "3.7.0", fix.bug)) << fix.bug;
  }
  EXPECT_TRUE(warns("etcd", "3.5.9", "etcd#17529")) << "9 is less than 13";
}

TEST(ServerBugs, OneLinesBugIsNotTheOthers) {
  for (const char* version : {"3.4.0", "3.4.45", "3.6.0"}) {
    EXPECT_FALSE(warns("etcd", version, "etcd#13766")) << version;
  }
  for (const char* bug : {"etcd#15271", "etcd#17529", "etcd#17780", "etcd#18089", "etcd#19179"}) {
    EXPECT_FALSE(warns("etcd", "3.6.0", bug)) << bug << " was fixed before 3.6.0";
  }
}

// The releases with the fix still have the bug, but it is rarer. There is no release to upgrade to.
TEST(ServerBugs, ThatALeaseCanBeRevokedEarlyIsSaidOfEveryEtcd) {
  for (const char* version : {"3.4.30", "3.5.12"}) {
    EXPECT_TRUE(warns("etcd", version, "etcd#15247")) << version;
    EXPECT_FALSE(warns("etcd", version, "still")) << version;
  }
  for (const char* version : {"3.4.31", "3.4.45", "3.5.13", "3.5.16", "3.5.30", "3.6.9", "3.7.0"}) {
    EXPECT_TRUE(warns("etcd", version, "etcd#15247")) << version;
    EXPECT_TRUE(warns("etcd", version, "can still revoke a live lease")) << version;
  }
  EXPECT_EQ(known_bugs("etcd", "3.5.30").size(), 1U);
  EXPECT_EQ(known_bugs("etcd", "3.6.9").size(), 1U);
}

TEST(ServerBugs, EtcdOfALineThatHasEndedIsSaidToBeOld) {
  EXPECT_TRUE(warns("etcd", "3.3.27", "not supported"));
  EXPECT_TRUE(warns("etcd", "3.4.23", "no longer maintained"));
  EXPECT_TRUE(warns("etcd", "3.4.45", "no longer maintained"));
  EXPECT_EQ(known_bugs("etcd", "3.4.45").size(), 2U);
  EXPECT_FALSE(warns("etcd", "3.5.0", "no longer maintained"));
}

TEST(ServerBugs, VersionsThatWereBuiltFromSourcesAreReadToo) {
  EXPECT_TRUE(warns("etcd", "3.5.0-rc.1", "etcd#17529"));
  EXPECT_TRUE(warns("etcd", "3.4.23+git", "etcd#17529"));
}

TEST(ServerBugs, EveryBugOfZooKeeperEndsWithItsFix) {
  EXPECT_TRUE(warns("zk", "3.4.14", "not supported"));
  EXPECT_FALSE(warns("zk", "3.5.0", "not supported"));
  for (const char* version : {"3.5.0", "3.6.4", "3.7.2", "3.8.0", "3.8.3", "3.9.0", "3.9.1"}) {
    EXPECT_TRUE(warns("zk", version, "ZOOKEEPER-4785")) << version;
  }
  for (const char* version : {"3.8.4", "3.9.2", "3.10.0"}) {
    EXPECT_FALSE(warns("zk", version, "ZOOKEEPER-4785")) << version;
  }
  EXPECT_TRUE(warns("zk", "3.9.3", "ZOOKEEPER-4925"));
  EXPECT_FALSE(warns("zk", "3.9.4", "ZOOKEEPER-4925"));
  EXPECT_TRUE(known_bugs("zk", "3.8.4").empty());
  EXPECT_TRUE(known_bugs("zk", "3.9.4").empty());
}

}  // namespace
}  // namespace baton::cli::test
