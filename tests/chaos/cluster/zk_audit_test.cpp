// That servers which have lost what was committed are found, and put right.
#include "chaos/cluster/zk_audit.h"
#include "support/eventually.h"
#include "support/zk_test_client.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <stop_token>
#include <string>
#include <thread>

namespace baton::chaos {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class ZkAudits : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::zk_installed()) GTEST_SKIP() << "no ZooKeeper on this machine";
    test::ZkOptions options;
    options.servers = 3;
    options.tick = 500ms;
    zk_ = std::make_unique<test::ZkEnsemble>(options);
    client_ = std::make_unique<test::ZkTestClient>(zk_->hosts(), 20s);
    begin_writing();
  }
  void TearDown() override { end_writing(); }

  void begin_writing() {
    writes_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        client_->create("/change", "", ZOO_SEQUENCE);
        std::this_thread::sleep_for(10ms);
      }
    });
  }
  void end_writing() { writes_ = {}; }

  void make(const std::string& node) {
    ASSERT_TRUE(test::eventually("a node to be made", [&] {
      const int code = client_->create(node, "");
      return code == ZOK || code == ZNODEEXISTS;
    }));
  }
  // What is committed while it is up is in a file of its own.
  void restart(int server) {
    zk_->restart(server);
    zk_->wait_synced();
  }
  fs::path newest_log(int server) const {
    fs::path newest;
    const auto data = fs::path(zk_->log(server)).parent_path() / "data/version-2";
    for (const auto& file : fs::directory_iterator(data)) {
      const auto name = file.path().filename().string();
      if (!name.starts_with("log.")) continue;
      const auto zxid = [](const fs::path& log) {
        return std::stoull(log.extension().string().substr(1), nullptr, 16);
      };
      if (newest.empty() || zxid(newest) < zxid(file.path())) newest = file.path();
    }
    return newest;
  }
  // Of those who have the same, the last one is elected.
  void have_the_last_one_lead() {
    end_writing();
    zk_->wait_synced();
    for (int i = 0; i < zk_->size(); ++i) zk_->kill(i);
    for (int i = 0; i < zk_->size(); ++i) zk_->start(i, false);
    zk_->wait_synced();
    ASSERT_EQ(zk_->leader(), zk_->size() - 1);
    begin_writing();
  }
  // All that is astray within some rounds: more than it takes to find one.
  std::vector<Stray> found() {
    ZkAudit audit(*zk_);
    std::vector<Stray> all;
    for (int i = 0; i < 20 && all.empty(); ++i) {
      all = audit.look();
      std::this_thread::sleep_for(50ms);
    }
    return all;
  }

  std::unique_ptr<test::ZkEnsemble> zk_;
  std::unique_ptr<test::ZkTestClient> client_;
  std::jthread writes_;
};

TEST_F(ZkAudits, AServerThatHasLostAPartOfItsLogIsFoundAndRebuilt) {
  const int server = zk_->size() - 1;
  make("/before");
  if (zk_->leader() == server) restart(server);
  ASSERT_NE(zk_->leader(), server);
  restart(server);
  EXPECT_TRUE(found().empty());
  make("/lost");
  zk_->wait_synced();
  const auto lost = newest_log(server);
  restart(server);
  make("/after");
  zk_->wait_synced();
  zk_->kill(server);
  ASSERT_NE(newest_log(server), lost);
  fs::remove(lost);
  zk_->start(server);
  zk_->wait_synced();

  test::ZkTestClient there(zk_->host(server), 20s);
  EXPECT_EQ(there.exists("/before"), ZOK);
  EXPECT_EQ(there.exists("/lost"), ZNONODE);
  EXPECT_EQ(there.exists("/after"), ZOK);
  const auto strays = found();
  ASSERT_EQ(strays.size(), 1U);
  EXPECT_EQ(strays[0].server, server);

  have_the_last_one_lead();  // now all others have another digest than it
  const auto still = found();
  ASSERT_EQ(still.size(), 1U);
  EXPECT_EQ(still[0].server, server);

  zk_->rebuild(server);
  EXPECT_TRUE(found().empty());
  test::ZkTestClient again(zk_->host(server), 20s);
  EXPECT_EQ(again.exists("/lost"), ZOK);
}

}  // namespace
}  // namespace baton::chaos
