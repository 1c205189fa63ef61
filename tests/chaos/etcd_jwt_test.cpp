// JSON web tokens that expire after a few seconds, even if they are used. Servers from 3.4.42,
// 3.5.28 and 3.6.9 check them with every keepalive.
#include "chaos/etcd_security.h"
#include "chaos/grants.h"
#include "support/eventually.h"
#include "support/run.h"

#include <optional>
#include <regex>
#include <thread>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::kLong;
using test::Stopwatch;

constexpr auto kJwtLife = 3s;

class EtcdJwt : public EtcdSecurity {
 protected:
  void SetUp() override {
    EtcdSecurity::SetUp();
    if (IsSkipped()) return;
    if (!test::openssl_installed()) GTEST_SKIP() << "no openssl on this machine";
    const std::string key = directory_ / "jwt.key";
    const std::string pub = directory_ / "jwt.pub";
    ASSERT_EQ(test::run({"openssl", "genrsa", "-out", key, "2048"}).code, 0);
    ASSERT_EQ(test::run({"openssl", "rsa", "-in", key, "-pubout", "-out", pub}).code, 0);
    keep_secret(key);
    test::EtcdOptions options;
    options.flags = {"--auth-token=jwt,pub-key=" + pub + ",priv-key=" + key +
                     ",sign-method=RS256,ttl=" + std::to_string(kJwtLife.count()) + "s"};
    etcd_.emplace(options);
    etcd_->add_user(kApp.name, kApp.password, "/app/");
    etcd_->enable_auth(kRoot.password);
  }
  void TearDown() override {
    const std::regex token("eyJ[A-Za-z0-9_-]+\\.");
    for (const auto& [level, line] : log_.lines()) {
      EXPECT_FALSE(std::regex_search(line, token)) << line;
    }
    EtcdSecurity::TearDown();
  }
  Client connect(std::chrono::milliseconds session_timeout) {
    auto options = as(kApp);
    options.session_timeout = session_timeout;
    return Client::connect("etcd://" + etcd_->hosts() + "/app", options);
  }

 private:
  std::optional<test::EtcdCluster> etcd_;
};

// Keepalives come every 2 s, and every second one meets an expired token. The client sends no other
// requests: without a new token for the stream it would lose the lock after 6 s.
TEST_F(EtcdJwt, AHoldAndItsWaiterOutliveManyTokens) {
  auto holder = connect(6s);
  auto other = connect(6s);
  auto lock = holder.mutex("job").acquire({.timeout = kLong});
  Waiter waiter(other.mutex("job"));
  const Stopwatch watch;
  while (watch.elapsed() < 4 * kJwtLife) {
    std::this_thread::sleep_for(50ms);
    ASSERT_TRUE(lock.valid()) << lock.lost_reason().message();
    ASSERT_FALSE(waiter.granted());
  }
  lock.verify(kLong);
  lock.release(kLong);
  ASSERT_TRUE(eventually("granted", [&] { return waiter.granted(); }));
  waiter.release();
  EXPECT_EQ(log_.count(LogLevel::warning, "lost"), 0U);
}

// Every keepalive meets an expired token.
TEST_F(EtcdJwt, TokensThatLiveForLessThanABeatAreEnough) {
  auto holder = connect(12s);
  auto lock = holder.mutex("job").acquire({.timeout = kLong});
  const Stopwatch watch;
  while (watch.elapsed() < 14s) {
    std::this_thread::sleep_for(50ms);
    ASSERT_TRUE(lock.valid()) << lock.lost_reason().message();
  }
  lock.release(kLong);
}

}  // namespace
}  // namespace baton::chaos
