// `baton watch` with a pipe as stdout. terminal_test.cpp tests it on a terminal.
#include <gtest/gtest.h>

#include <signal.h>

#include "support/fixture.h"

namespace baton::cli::test {
namespace {

class Watch : public CliTest {};

TEST_F(Watch, PrintsALineForEveryChange) {
  BatonProcess watch(on_store({"watch", "x"}));
  EXPECT_NE(watch.line().find(" x is free"), std::string::npos);
  BatonProcess holder(run_sh("x", "echo up; read line", {"--label", "alice"}), with_input());
  EXPECT_NE(watch.line().find(" x is held by alice, token "), std::string::npos) << watch.out();
  holder.close_input();
  EXPECT_NE(watch.line().find(" x is free"), std::string::npos) << watch.out();
  watch.signal(SIGINT);
  EXPECT_EQ(watch.wait(), 130);
}

TEST_F(Watch, PrintsAnObjectALineForMachines) {
  BatonProcess watch(on_store({"watch", "x", "--json"}));
  EXPECT_TRUE(nlohmann::json::parse(watch.line())["entries"].empty());
  BatonProcess holder(run_sh("x", "echo up; read line", {"--label", "alice"}), with_input());
  const auto held = nlohmann::json::parse(watch.line());
  EXPECT_EQ(held["name"], "x");
  EXPECT_EQ(held["entries"][0]["label"], "alice");
}

TEST_F(Watch, EndsWhenNobodyReads) {
  // head closes the pipe after one line. When watch has ended, the shell prints "over" to stderr.
  BatonProcess pipeline(run_sh(
      "y", "{ " + baton_binary() + " --url " + url() + " watch x; echo over >&2; } | head -n 1"));
  EXPECT_TRUE(pipeline.complains("over")) << pipeline.err();
}

}  // namespace
}  // namespace baton::cli::test
