// Which command lines baton accepts, and which it refuses before it opens a store.
#include <gtest/gtest.h>

#include <filesystem>

#include "args.h"
#include "errors.h"
#include "support/fixture.h"

namespace baton::cli::test {
namespace {

using std::chrono::milliseconds;

int refusal(const std::vector<std::string>& words) {
  try {
    parse_args(words);
  } catch (const Failure& failure) {
    return failure.exit_code();
  }
  return 0;
}

class Arguments : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    unsetenv("BATON_URL");
  }
};

TEST_F(Arguments, GlobalOptionsStandBeforeOrAfterTheCommandWord) {
  const auto before = parse_args({"--url", "memory:", "--json", "show", "a"});
  const auto after = parse_args({"show", "a", "--json", "--url=memory:"});
  ASSERT_TRUE(before && after);
  EXPECT_EQ(before->url, "memory:");
  EXPECT_EQ(after->url, "memory:");
  EXPECT_TRUE(before->json && after->json);
  EXPECT_EQ(after->name, "a");
}

TEST_F(Arguments, TheEnvironmentNamesTheStoreUnlessTheOptionDoes) {
  setenv("BATON_URL", "memory:env", 1);
  EXPECT_EQ(parse_args({"ls"})->url, "memory:env");
  EXPECT_EQ(parse_args({"ls", "--url", "memory:x"})->url, "memory:x");
  unsetenv("BATON_URL");
}

TEST_F(Arguments, TheJobIsTakenWordByWord) {
  const std::vector<std::string> job{"cmd", "--json", "--", "[a,b]", "", "-n", "--url"};
  std::vector<std::string> words{"--url", "file:///x", "run", "x", "--timeout", "2m", "--"};
  words.insert(words.end(), job.begin(), job.end());
  const auto args = parse_args(words);
  ASSERT_TRUE(args);
  EXPECT_EQ(args->command, Command::run);
  EXPECT_EQ(args->job, job);
  EXPECT_FALSE(args->json);
  EXPECT_EQ(args->timeout, milliseconds(120'000));
}

TEST_F(Arguments, ALockMayHaveTheNameOfACommand) {
  EXPECT_EQ(parse_args({"show", "ls"})->name, "ls");
  EXPECT_EQ(parse_args({"show", "run"})->name, "run");
  EXPECT_EQ(parse_args({"run", "run", "--", "x"})->name, "run");
  EXPECT_EQ(parse_args({"show", "--", "-dash"})->name, "-dash");
}

TEST_F(Arguments, TryOnceIsATimeoutOfZero) {
  EXPECT_EQ(parse_args({"run", "-n", "x", "--", "true"})->timeout, milliseconds(0));
  EXPECT_EQ(parse_args({"run", "x", "--", "true"})->timeout, std::nullopt);
  EXPECT_EQ(refusal({"run", "-n", "--timeout", "1s", "x", "--", "true"}), kUsage);
}

TEST_F(Arguments, NonsenseIsAUsageError) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{},
                                             {"juggle"},
                                             {"ls", "--frobnicate"},
                                             {"show"},
                                             {"show", "a", "b"},
                                             {"show", "a b"},
                                             {"show", "../a"},
                                             {"show", ""},
                                             {"show", "x-lock-7"},
                                             {"run", "x"},
                                             {"run", "x", "--"},
                                             {"run", "x", "--", ""},
                                             {"run", "--", "true"},
                                             {"run", "x", "true"},
                                             {"run", "x", "--timeout", "soon", "--", "true"},
                                             {"run", "x", "--timeout", "-1s", "--", "true"},
                                             {"run", "x", "--grace", "1y", "--", "true"},
                                             {"run", "x", "--timeout=", "--", "true"},
                                             {"ls", "--session-timeout", "1.5.s"},
                                             {"ls", "--connect-timeout", "ms"},
                                             {"ls", "--connect-timeout", ""},
                                             {"evict", "x"},
                                             {"doctor", "x"}}) {
    std::string line;
    for (const std::string& word : words) line += word + " ";
    EXPECT_EQ(refusal(words), kUsage) << line;
  }
}

TEST_F(Arguments, UsageErrorsTouchNoStore) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"show", "not a name"},
                                             {"run", "a//b", "--", "true"},
                                             {"run", "x", "--timeout", "1 s", "--", "true"},
                                             {"ls", "--session-timeout", "forever"},
                                             // for example --timeout "$UNSET"
                                             {"run", "x", "--timeout", "", "--", "true"},
                                             {"run", "x", "--grace", "", "--", "true"},
                                             {"ls", "--session-timeout", ""}}) {
    BatonProcess process(on_store(args));
    EXPECT_EQ(process.wait(), 64) << process.err();
    EXPECT_EQ(process.err().rfind("baton: ", 0), 0U) << process.err();
    EXPECT_EQ(process.out(), "");
  }
  EXPECT_FALSE(std::filesystem::exists(directory() + "/store"));
}

TEST_F(Arguments, BadUrlsAreUsageErrors) {
  for (const char* bad : {"http://x/", "file://", "file:relative", "nonsense", "zk://"}) {
    for (const char* command : {"show", "watch"}) {
      BatonProcess process({command, "x", "--url", bad});
      EXPECT_EQ(process.wait(), 64) << bad << ": " << process.err();
      EXPECT_NE(process.err(), "") << bad;
    }
    BatonProcess run({"--url", bad, "run", "x", "--", "true"});
    EXPECT_EQ(run.wait(), 64) << bad << ": " << run.err();
  }
}

TEST_F(Arguments, HelpHasExamplesForEveryCommand) {
  for (const char* command : {"run", "ls", "show", "watch", "evict", "doctor"}) {
    BatonProcess process({command, "--help"});
    EXPECT_EQ(process.wait(), 0) << process.err();
    EXPECT_NE(process.out().find("Examples:\n  baton "), std::string::npos) << process.out();
    EXPECT_EQ(process.err(), "");
  }
  BatonProcess all({"--help"});
  EXPECT_EQ(all.wait(), 0);
  EXPECT_NE(all.out().find("Examples:"), std::string::npos);
}

TEST_F(Arguments, VersionIsPrinted) {
  BatonProcess process({"--version"});
  EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(process.out().rfind("baton 0.", 0), 0U) << process.out();
}

}  // namespace
}  // namespace baton::cli::test
