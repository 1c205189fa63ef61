// Checks that the environment can choose the etcd programs under test.
#include "support/etcd_server.h"
#include "support/scoped_variable.h"

#include <filesystem>
#include <fstream>

namespace baton::test {
namespace {

class EtcdChoice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!etcd_installed() || !etcdctl_installed()) GTEST_SKIP() << "no etcd on this machine";
    for (const auto* program : {"etcd", "etcdctl"}) {
      const std::string variable = program == std::string("etcd") ? "ETCD" : "ETCDCTL";
      const char* given = std::getenv(("BATON_TEST_" + variable + "_BIN").c_str());
      const std::string real = given != nullptr && *given != '\0' ? given : program;
      std::ofstream(dir_ / program)
          << "#!/bin/sh\necho >>" << (dir_ / program) << ".ran\nexec " << real << " \"$@\"\n";
      std::filesystem::permissions(dir_ / program, std::filesystem::perms::owner_all);
    }
  }
  bool ran(const std::string& program) const {
    return std::filesystem::exists(dir_ / program + ".ran");
  }
  TempDir dir_;
};

TEST_F(EtcdChoice, TheNamedProgramIsTheOneThatRuns) {
  const ScopedVariable server("BATON_TEST_ETCD_BIN", dir_ / "etcd");
  const ScopedVariable tool("BATON_TEST_ETCDCTL_BIN", dir_ / "etcdctl");
  EtcdCluster etcd;
  EXPECT_TRUE(ran("etcd"));
  EXPECT_EQ(etcd.etcdctl({"put", "a", "1"}).code, 0);
  EXPECT_TRUE(ran("etcdctl"));
}

TEST_F(EtcdChoice, ANamedProgramThatIsNotThereFailsAndSkipsNothing) {
  const ScopedVariable server("BATON_TEST_ETCD_BIN", dir_ / "none");
  EXPECT_TRUE(etcd_installed());
  EXPECT_THROW(EtcdCluster{}, std::runtime_error);
}

TEST_F(EtcdChoice, TheScriptStartsTheNamedProgram) {
  const ScopedVariable server("BATON_TEST_ETCD_BIN", dir_ / "etcd");
  const std::string script = BATON_TEST_SCRIPTS "/etcd-server";
  const auto started = run({script, "start", dir_ / "data"}, {}, std::chrono::seconds(120));
  EXPECT_EQ(started.code, 0) << started.err;
  EXPECT_TRUE(ran("etcd"));
  EXPECT_EQ(run({script, "stop", dir_ / "data"}).code, 0);
}

}  // namespace
}  // namespace baton::test
