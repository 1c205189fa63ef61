// Checks that the environment can choose the ZooKeeper server under test.
#include "support/run.h"
#include "support/scoped_variable.h"
#include "support/temp_dir.h"
#include "support/zk_server.h"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace baton::test {
namespace {

std::string words_of(const std::string& pid) {
  std::ifstream in("/proc/" + pid + "/cmdline");
  return {std::istreambuf_iterator<char>(in), {}};
}

class ZkChoice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!zk_installed()) GTEST_SKIP() << "no ZooKeeper on this machine";
    const char* given = std::getenv("BATON_TEST_ZK_CLASSPATH");
    class_path_ = given != nullptr && *given != '\0'
                      ? given
                      : "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar";
    // The same server with another class path: an empty directory at the front changes nothing.
    std::filesystem::create_directory(dir_ / "classes");
    class_path_ = (dir_ / "classes") + ":" + class_path_;
  }
  TempDir dir_;
  std::string class_path_;
};

TEST_F(ZkChoice, TheNamedJarsAreTheOnesThatRun) {
  const ScopedVariable jars("BATON_TEST_ZK_CLASSPATH", class_path_);
  ZkEnsemble zk;
  EXPECT_NE(words_of(std::to_string(zk.pid(0))).find(class_path_), std::string::npos);
}

TEST_F(ZkChoice, NamedJarsThatAreNotThereFailAndSkipNothing) {
  const ScopedVariable jars("BATON_TEST_ZK_CLASSPATH", dir_ / "none.jar");
  EXPECT_TRUE(zk_installed());
  EXPECT_THROW(ZkEnsemble{}, std::runtime_error);
}

TEST_F(ZkChoice, TheScriptStartsTheNamedJars) {
  const ScopedVariable jars("BATON_TEST_ZK_CLASSPATH", class_path_);
  const std::string script = BATON_TEST_SCRIPTS "/zk-server";
  const auto started = run({script, "start", dir_ / "data"}, {}, std::chrono::seconds(120));
  ASSERT_EQ(started.code, 0) << started.err;
  std::string pid;
  std::ifstream(dir_ / "data/pid") >> pid;
  EXPECT_NE(words_of(pid).find(class_path_), std::string::npos);
  EXPECT_EQ(run({script, "stop", dir_ / "data"}).code, 0);
}

}  // namespace
}  // namespace baton::test
