// The commands ls, show and doctor.
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <regex>

#include "support/fixture.h"

namespace baton::cli::test {
namespace {

class Show : public CliTest {};
class Ls : public CliTest {};
class Doctor : public CliTest {};

TEST_F(Show, SaysThatAFreeLockIsFree) {
  BatonProcess text(on_store({"show", "a/b"}));
  EXPECT_EQ(text.wait(), 0) << text.err();
  EXPECT_EQ(text.out(), "a/b is free\n");
  const auto json = show("a/b");
  EXPECT_EQ(json["name"], "a/b");
  EXPECT_TRUE(json["entries"].is_array());
  EXPECT_TRUE(json["entries"].empty());
}

TEST_F(Show, MarksTheHolderAndListsWaitersInOrder) {
  BatonProcess holder(run_sh("x", "echo up; read line", {"--label", "alice"}), with_input());
  ASSERT_EQ(holder.line(), "up");
  BatonProcess waiter(run_sh("x", "true", {"--label", "bob"}));
  ASSERT_TRUE(queue_gets("x", 2));
  BatonProcess text(on_store({"show", "x"}));
  EXPECT_EQ(text.wait(), 0) << text.err();
  EXPECT_NE(text.out().find("x is held, 1 waiting\n"), std::string::npos) << text.out();
  EXPECT_TRUE(std::regex_search(text.out(), std::regex("\\*  1  alice +[0-9]+ +20[0-9-]+ ")));
  EXPECT_TRUE(std::regex_search(text.out(), std::regex("\n   +2  bob "))) << text.out();
}

TEST_F(Show, PrintsEntriesForMachines) {
  BatonProcess holder(run_sh("x", "echo $BATON_TOKEN; read line", {"--label", "a \"b\""}),
                      with_input());
  const auto token = std::stoull(holder.line());
  const auto entry = show("x")["entries"][0];
  EXPECT_EQ(entry["label"], "a \"b\"");
  EXPECT_EQ(entry["token"], token);
  EXPECT_TRUE(entry["id"].is_string());
  EXPECT_TRUE(std::regex_match(entry["since"].get<std::string>(),
                               std::regex("\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z")))
      << entry;
}

TEST_F(Ls, ListsTheLocksThatSomebodyHasOrWantsByPrefix) {
  BatonProcess a(run_sh("app/a", "echo up; read line"), with_input());
  BatonProcess b(run_sh("app/b", "echo up; read line"), with_input());
  BatonProcess c(run_sh("other", "echo up; read line"), with_input());
  ASSERT_EQ(a.line() + b.line() + c.line(), "upupup");
  BatonProcess all(on_store({"ls"}));
  EXPECT_EQ(all.wait(), 0) << all.err();
  EXPECT_EQ(all.out(), "app/a\napp/b\nother\n");
  BatonProcess some(on_store({"ls", "app/", "--json"}));
  EXPECT_EQ(some.wait(), 0) << some.err();
  EXPECT_EQ(nlohmann::json::parse(some.out()), (nlohmann::json{"app/a", "app/b"}));
}

TEST_F(Ls, PrintsAnEmptyListForAnEmptyStore) {
  BatonProcess text(on_store({"ls"}));
  EXPECT_EQ(text.wait(), 0) << text.err();
  EXPECT_EQ(text.out(), "");
  BatonProcess json(on_store({"ls", "--json"}));
  EXPECT_EQ(json.wait(), 0);
  EXPECT_EQ(json.out(), "[]\n");
}

TEST_F(Doctor, ReportsTheStoreAndItsSpeed) {
  BatonProcess text(on_store({"doctor"}));
  EXPECT_EQ(text.wait(), 0) << text.err();
  for (const char* word : {"backend", "file", "endpoint", "acquire + release", "inotify"}) {
    EXPECT_NE(text.out().find(word), std::string::npos) << word << "\n" << text.out();
  }
  BatonProcess json(on_store({"doctor", "--json"}));
  EXPECT_EQ(json.wait(), 0) << json.err();
  const auto report = nlohmann::json::parse(json.out());
  EXPECT_EQ(report["backend"], "file");
  EXPECT_GT(report["acquire_release_us"], 0);
  EXPECT_TRUE(report["session_timeout_ms"].is_null());
  EXPECT_TRUE(report["warnings"].is_array());
  BatonProcess ls(on_store({"ls"}));
  ls.wait();
  EXPECT_EQ(ls.out(), "") << "the probe leaves nothing behind";
}

TEST_F(Doctor, PrintsTheTokenBase) {
  BatonProcess none(on_store({"doctor", "--json"}));
  EXPECT_EQ(none.wait(), 0) << none.err();
  EXPECT_EQ(nlohmann::json::parse(none.out())["token_base"], 0);
  const std::string moved = url() + "?token_base=5000";
  BatonProcess json({"--url", moved, "doctor", "--json"});
  EXPECT_EQ(json.wait(), 0) << json.err();
  EXPECT_EQ(nlohmann::json::parse(json.out())["token_base"], 5000);
  BatonProcess text({"--url", moved, "doctor"});
  EXPECT_EQ(text.wait(), 0) << text.err();
  EXPECT_TRUE(std::regex_search(text.out(), std::regex("token base +5000\n"))) << text.out();
  BatonProcess refused(on_store({"doctor"}));
  EXPECT_EQ(refused.wait(), 64) << "no token base is another one";
  EXPECT_NE(refused.err().find("?token_base=5000"), std::string::npos) << refused.err();
}

TEST_F(Show, TokenIsThatOfRunWithATokenBase) {
  const std::string moved = url() + "?token_base=4000000000000000000";
  BatonProcess holder(
      {"--url", moved, "run", "x", "--", "sh", "-c", "echo $BATON_TOKEN; read line"}, with_input());
  const auto token = std::stoull(holder.line());
  EXPECT_GT(token, 4'000'000'000'000'000'000U);
  BatonProcess shown({"--url", moved, "show", "x", "--json"});
  EXPECT_EQ(shown.wait(), 0) << shown.err();
  EXPECT_EQ(nlohmann::json::parse(shown.out())["entries"][0]["token"], token);
  // A nested run of the same lock is refused, also with a token base.
  BatonProcess nested(
      {"--url", moved, "run", "y", "--", baton_binary(), "--url", moved, "run", "y", "--", "true"});
  EXPECT_EQ(nested.wait(), 64) << nested.err();
  EXPECT_NE(nested.err().find("nested"), std::string::npos) << nested.err();
}

TEST_F(Doctor, WarnsOfADirectoryThatAnybodyCanChange) {
  ASSERT_EQ(mkdir((directory() + "/store").c_str(), 0777), 0);
  ASSERT_EQ(chmod((directory() + "/store").c_str(), 0777), 0);
  BatonProcess json(on_store({"doctor", "--json"}));
  const int code = json.wait();
  if (code == 0) {  // the store may also refuse such a directory
    EXPECT_EQ(nlohmann::json::parse(json.out())["warnings"].size(), 1U) << json.out();
  } else {
    EXPECT_EQ(code, 77) << json.err();
  }
}

TEST_F(Doctor, UnreachableStoresAre69ForEveryCommand) {
  const std::string nowhere = "file://" + directory() + "/no/such/parent";
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"doctor"}, {"ls"}, {"show", "x"}, {"watch", "x"}, {"evict", "--yes", "x", "y"}}) {
    std::vector<std::string> words{"--url", nowhere};
    words.insert(words.end(), args.begin(), args.end());
    BatonProcess process(words);
    EXPECT_EQ(process.wait(), 69) << args[0] << ": " << process.err();
    EXPECT_EQ(process.err().rfind("baton: ", 0), 0U) << process.err();
    EXPECT_EQ(process.out(), "");
  }
}

}  // namespace
}  // namespace baton::cli::test
