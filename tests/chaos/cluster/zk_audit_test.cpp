// Checks that servers that have lost committed data are found and rebuilt.
#include "chaos/cluster/zk_audit.h"
#include "support/eventually.h"
#include "support/zk_test_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
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
        if (client_->create("/change", "", ZOO_SEQUENCE) == ZOK) ++changes_;
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
  // Restarts a server, so that the changes of each of its lives are in a separate log file. Nothing
  // is committed while the server is down: if it missed too much, it would not read its log.
  void restart(
      int server, const std::function<void()>& meanwhile = [] {}) {
    end_writing();
    zk_->wait_synced();
    zk_->kill(server);
    meanwhile();
    zk_->start(server);
    zk_->wait_synced();
    begin_writing();
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
  // Of two servers with the same data, the last one is elected.
  void have_the_last_one_lead() {
    const int last = zk_->size() - 1;
    end_writing();
    zk_->wait_synced();
    for (int i = 0; i <= last; ++i) zk_->kill(i);
    zk_->start(last, false);
    zk_->start(0);
    for (int i = 1; i < last; ++i) zk_->start(i);
    zk_->wait_synced();
    ASSERT_EQ(zk_->leader(), last);
    begin_writing();
  }
  // The server that has lost data, after more changes and looks than it takes to find one.
  std::optional<Stray> found() {
    ZkAudit audit(*zk_);
    std::optional<Stray> one;
    int rounds = 0;
    const int enough = changes_ + 40;
    EXPECT_TRUE(test::eventually(
        "an audit",
        [&] {
          std::this_thread::sleep_for(50ms);  // time for changes
          one = audit.look();
          return one || (++rounds > 40 && changes_ > enough);
        },
        60s));
    return one;
  }

  std::unique_ptr<test::ZkEnsemble> zk_;
  std::unique_ptr<test::ZkTestClient> client_;
  std::atomic<int> changes_{0};
  std::jthread writes_;
};

TEST_F(ZkAudits, AServerThatHasLostAPartOfItsLogIsFoundAndRebuilt) {
  const int server = zk_->size() - 1;
  make("/before");
  if (zk_->leader() == server) restart(server);
  ASSERT_NE(zk_->leader(), server);
  restart(server);
  EXPECT_FALSE(found());
  make("/lost");
  zk_->wait_synced();
  const auto lost = newest_log(server);
  restart(server);
  make("/after");
  const auto data = lost.parent_path();
  const auto remove_lost = [&] {
    ASSERT_NE(newest_log(server), lost);
    fs::remove(lost);
  };
  try {
    restart(server, remove_lost);
  } catch (const std::runtime_error& why) {
    // Newer servers (3.9.6, not 3.9.3) check the order of the changes in their log, and do not
    // start with a gap. Then there is nothing to find, and the server recovers with new data.
    ASSERT_NE(std::string(why.what()).find("Committed proposal cached out of order"),
              std::string::npos)
        << why.what();
    fs::remove_all(data);
    zk_->start(server);
    zk_->wait_synced();
    begin_writing();
    EXPECT_FALSE(found());
    EXPECT_EQ(test::ZkTestClient(zk_->host(server), 20s).exists("/lost"), ZOK);
    return;
  }

  test::ZkTestClient there(zk_->host(server), 20s);
  EXPECT_EQ(there.exists("/before"), ZOK);
  EXPECT_EQ(there.exists("/lost"), ZNONODE);
  EXPECT_EQ(there.exists("/after"), ZOK);
  auto stray = found();
  ASSERT_TRUE(stray);
  EXPECT_EQ(stray->server, server);

  have_the_last_one_lead();  // now the digests of all others differ from the leader's
  stray = found();
  ASSERT_TRUE(stray);
  EXPECT_EQ(stray->server, server);

  // If one of the other two is down, the remaining one counts alone, and nothing shows which is
  // wrong.
  zk_->kill(0);
  EXPECT_FALSE(found());
  EXPECT_THROW(zk_->rebuild(server), std::runtime_error);
  zk_->start(0);

  zk_->rebuild(server);
  EXPECT_FALSE(found());
  test::ZkTestClient again(zk_->host(server), 20s);
  EXPECT_EQ(again.exists("/lost"), ZOK);
}

}  // namespace
}  // namespace baton::chaos
