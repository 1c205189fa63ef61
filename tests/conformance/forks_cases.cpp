// A process that holds a lock forks. In the child the lock is lost and all calls fail. The end of
// the child does not affect the locks of the parent.
#include "conformance/fixture.h"
#include "support/child.h"

#include <map>

namespace baton::conformance {
namespace {

using test::Child;

std::string code(Errc errc) { return std::to_string(static_cast<int>(errc)); }

// Reads the lines "child KEY VALUE" and "parent KEY VALUE" of the fork role, up to "parent ready".
std::map<std::string, std::string> report_of(Child& child) {
  std::map<std::string, std::string> report;
  while (auto line = child.line()) {
    const auto first = line->find(' ');
    const auto second = line->find(' ', first + 1);
    const auto key = line->substr(0, second);
    report[key] = second == line->npos ? "" : line->substr(second + 1);
    if (key == "parent ready") break;
  }
  return report;
}

void check(Rig& rig, const std::string& how) {
  Child child({"fork", rig.url(), "a", how});
  auto report = report_of(child);
  EXPECT_EQ(report["child valid"], "0");
  EXPECT_EQ(report["child state"], std::to_string(static_cast<int>(LockState::lost)));
  EXPECT_EQ(report["child reason"], code(Errc::forked));
  EXPECT_EQ(report["child for"], "0");
  EXPECT_EQ(report["child stdvalid"], "0");
  for (const char* call : {"acquire", "try", "inspect", "list", "mutex", "result"}) {
    EXPECT_EQ(report[std::string("child ") + call], code(Errc::forked)) << call;
  }
  for (const char* call : {"lock", "verify", "release"}) {
    const auto got = report[std::string("child ") + call];
    EXPECT_TRUE(got == code(Errc::forked) || got == code(Errc::lock_lost)) << call << ": " << got;
  }
  EXPECT_EQ(report.count("child end"), how == "full" ? 1u : 0u);
  EXPECT_EQ(report["parent status"], "0");
  EXPECT_EQ(report["parent valid"], "1");
  EXPECT_EQ(report["parent verify"], "ok");
  EXPECT_EQ(report["parent stdvalid"], "1");
  // This process, too, sees that the locks are still held.
  if (can(rig.url().substr(0, rig.url().find(':')), Can::cross_processes)) {
    EXPECT_EQ(rig.entries("a"), 1u);
    EXPECT_EQ(rig.entries("a.std"), 1u);
  }
  child.close_input();
  EXPECT_TRUE(child.line_with("parent released"));
  EXPECT_EQ(child.exit_code(), 0);
}

TEST_P(Forks, ChildThatEndsByUnderscoreExitDisturbsNobody) {
  BATON_NEEDS(Can::fork);
  check(rig(), "quick");
}

TEST_P(Forks, ChildThatDestroysEverythingDisturbsNobody) {
  BATON_NEEDS(Can::fork);
  check(rig(), "full");
}

TEST_P(Forks, ParentKilledWhileItsForkLivesFreesTheLock) {
  BATON_NEEDS(Can::fork);
  BATON_NEEDS(Can::cross_processes);
  auto client = open();
  Child child({"fork", rig().url(), "a", "linger"});
  ASSERT_TRUE(child.line_with("child lingers"));
  child.kill_hard();
  EXPECT_TRUE(client.mutex("a").acquire(patient()).valid());
}

}  // namespace
}  // namespace baton::conformance
