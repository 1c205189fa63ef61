// Command lines that look right, but would lock nothing or the wrong thing. baton must refuse them.
#include <gtest/gtest.h>

#include <stdlib.h>

#include <string>
#include <vector>

#include "args.h"
#include "errors.h"
#include "support/fixture.h"

namespace baton::cli::test {
namespace {

class Refusals : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    unsetenv("BATON_URL");
  }
  void TearDown() override {
    unsetenv("BATON_URL");
    CliTest::TearDown();
  }

  // The message of the refusal; "": the command line was accepted.
  static std::string refusal(const std::vector<std::string>& words) {
    try {
      parse_args(words);
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.exit_code(), kUsage) << failure.what();
      return failure.what();
    }
    return "";
  }
};

// For example --url "$UNSET" in a script. The default store of the machine would be the wrong
// store.
TEST_F(Refusals, AnEmptyUrlUserOrFileIsAUsageError) {
  for (const std::string option :
       {"--url", "--user", "--password-file", "--cacert", "--cert", "--key"}) {
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{option, "", "ls"},
                                               {option + "=", "ls"},
                                               {"ls", option, ""},
                                               {"run", "x", option, "", "--", "true"}}) {
      EXPECT_NE(refusal(words).find(option), std::string::npos) << option << ": " << words[0];
    }
  }
  BatonProcess process({"--url", "", "run", "x", "--", "echo", "never"});
  EXPECT_EQ(process.wait(), 64) << process.err();
  EXPECT_EQ(process.out(), "");
}

TEST_F(Refusals, AnEmptyUrlInTheEnvironmentIsAUsageErrorUnlessTheOptionSaysMore) {
  setenv("BATON_URL", "", 1);
  EXPECT_NE(refusal({"ls"}).find("BATON_URL"), std::string::npos);
  EXPECT_EQ(refusal({"--url", "file:///tmp/x", "ls"}), "");
  BatonProcess process({"run", "x", "--", "echo", "never"}, {{{"BATON_URL", ""}}});
  EXPECT_EQ(process.wait(), 64) << process.err();
  EXPECT_EQ(process.out(), "");
}

TEST_F(Refusals, RunOnAMemoryStoreIsAUsageErrorBecauseItExcludesNoOtherProcess) {
  for (const char* url : {"memory:", "memory:shared"}) {
    EXPECT_NE(refusal({"--url", url, "run", "x", "--", "true"}).find("memory:"), std::string::npos);
    EXPECT_EQ(refusal({"--url", url, "ls"}), "");
  }
  setenv("BATON_URL", "memory:shared", 1);
  EXPECT_NE(refusal({"run", "x", "--", "true"}), "");
  BatonProcess process({"--url", "memory:shared", "run", "x", "--", "echo", "never"});
  EXPECT_EQ(process.wait(), 64) << process.err();
  EXPECT_EQ(process.out(), "");
}

}  // namespace
}  // namespace baton::cli::test
