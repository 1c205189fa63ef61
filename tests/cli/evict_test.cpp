// `baton evict`: what it returns, and what happens to the evicted holder or waiter.
#include <gtest/gtest.h>

#include <signal.h>

#include "support/fixture.h"

namespace baton::cli::test {
namespace {

class Evict : public CliTest {
 protected:
  std::string id_of(const std::string& lock, std::size_t position) const {
    return show(lock)["entries"][position]["id"];
  }
};

TEST_F(Evict, HolderGetsTermAndBatonExitsWith76) {
  BatonProcess holder(run_sh("x",
                             "trap 'echo got TERM; exit 0' TERM; echo up; "
                             "while :; do sleep 0.05; done"));
  ASSERT_EQ(holder.line(), "up");
  BatonProcess evict(on_store({"evict", "--yes", "x", id_of("x", 0)}));
  EXPECT_EQ(evict.wait(), 0) << evict.err();
  EXPECT_EQ(holder.line(), "got TERM");
  EXPECT_EQ(holder.wait(), 76);
  EXPECT_NE(holder.err().find("lost"), std::string::npos) << holder.err();
  EXPECT_TRUE(show("x")["entries"].empty());
}

TEST_F(Evict, HolderThatIgnoresTermIsKilledAfterTheGrace) {
  BatonProcess holder(run_sh("x", "trap '' TERM; sleep 1000 & echo $$ $!; while :; do wait; done",
                             {"--grace", "300ms"}));
  const std::string line = holder.line();
  const pid_t leader = std::stoi(line);
  const pid_t child = std::stoi(line.substr(line.find(' ')));
  BatonProcess evict(on_store({"evict", "--yes", "x", id_of("x", 0)}));
  EXPECT_EQ(evict.wait(), 0) << evict.err();
  EXPECT_EQ(holder.wait(), 76) << holder.err();
  EXPECT_FALSE(is_running(leader));
  EXPECT_FALSE(is_running(child));
}

TEST_F(Evict, WaiterJoinsAgainAtTheEnd) {
  BatonProcess holder(run_sh("x", "echo up; read line", {"--label", "a"}), with_input());
  ASSERT_EQ(holder.line(), "up");
  BatonProcess b(run_sh("x", "echo b", {"--label", "b"}));
  ASSERT_TRUE(queue_gets("x", 2));
  BatonProcess c(run_sh("x", "echo c", {"--label", "c"}));
  ASSERT_TRUE(queue_gets("x", 3));
  BatonProcess evict(on_store({"evict", "--yes", "x", id_of("x", 1), "--json"}));
  EXPECT_EQ(evict.wait(), 0) << evict.err();
  EXPECT_EQ(nlohmann::json::parse(evict.out())["evicted"], true);
  EXPECT_TRUE(eventually([&] {
    const auto entries = show("x")["entries"];
    return entries.size() == 3 && entries[1]["label"] == "c" && entries[2]["label"] == "b";
  }));
  holder.close_input();
  EXPECT_EQ(b.wait(), 0) << b.err();
  EXPECT_EQ(c.wait(), 0) << c.err();
}

TEST_F(Evict, MissingEntryIsExitCode1) {
  BatonProcess none(on_store({"evict", "--yes", "x", "no-such-entry"}));
  EXPECT_EQ(none.wait(), 1);
  EXPECT_NE(none.err().find("no-such-entry"), std::string::npos) << none.err();
}

TEST_F(Evict, WithoutATerminalItWantsAYes) {
  BatonProcess evict(on_store({"evict", "x", "id"}));
  EXPECT_EQ(evict.wait(), 64);
  EXPECT_NE(evict.err().find("--yes"), std::string::npos) << evict.err();
}

}  // namespace
}  // namespace baton::cli::test
