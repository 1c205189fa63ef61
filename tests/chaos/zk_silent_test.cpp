// Clients of an ensemble in which one server accepts connections and never answers, or cannot be
// reached for a while.
#include "support/eventually.h"
#include "support/log_capture.h"
#include "support/proxy.h"
#include "support/zk_server.h"

#include <baton/baton.h>

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <map>
#include <stdexcept>
#include <string>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::Direction;

class ZkSilentServer : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!test::zk_installed()) throw std::runtime_error("no ZooKeeper server here");
  }
  ZkSilentServer() { silent_.blackhole(Direction::kToServer); }

  // The client sees three servers.
  std::string url() const {
    return "zk://" + silent_.host() + "," + one_.host() + "," + two_.host() + "/silent";
  }

  test::ZkEnsemble zk_;
  test::Proxy one_{zk_.client_port(0)};
  test::Proxy two_{zk_.client_port(0)};
  test::Proxy silent_{zk_.client_port(0)};
};

TEST_F(ZkSilentServer, EveryConnectGetsPastIt) {
  std::map<std::string, int> chosen;
  int failed = 0;
  for (int n = 0; n < 50; ++n) {
    try {
      Client client = Client::connect(url());
      ++chosen[client.session().endpoint];
      // The client not only connects, it also works.
      EXPECT_TRUE(client.mutex("lock").try_acquire());
    } catch (const Error& e) {
      ++failed;
      ADD_FAILURE() << "connect " << n << ": " << e.what();
    }
  }
  EXPECT_EQ(failed, 0);
  EXPECT_GT(silent_.accepted(), 0u) << "it was never in the way";
  // The client chooses evenly among the servers that answer.
  EXPECT_EQ(chosen.size(), 2u);
  EXPECT_GE(chosen[one_.host()], 8);
  EXPECT_GE(chosen[two_.host()], 8);
}

TEST_F(ZkSilentServer, ErrorNamesTheSilentServerWhenTheOthersRefuse) {
  one_.cut();
  two_.cut();
  ClientOptions options;
  options.connect_timeout = 2s;
  try {
    Client::connect(url(), options);
    FAIL() << "there was no server to connect to";
  } catch (const Error& e) {
    EXPECT_EQ(e.errc(), Errc::connection_failed);
    EXPECT_NE(std::string(e.what()).find("no answer from " + silent_.host()), std::string::npos)
        << e.what();
  }
}

// The only server that is left was just paused, so the client must not give it up.
TEST_F(ZkSilentServer, PausedServerIsUsedAgainWhenTheOthersRefuse) {
  one_.cut();
  two_.cut();
  ClientOptions options;
  options.session_timeout = 4s;
  options.connect_timeout = 30s;
  test::LogCapture log;
  options.log = log.sink();
  auto connected = std::async(std::launch::async, [&] { return Client::connect(url(), options); });
  ASSERT_TRUE(test::eventually("the warning", [&] {
    return log.count(LogLevel::warning, "no answer from " + silent_.host() + ", and no other") > 0;
  }));
  silent_.heal();
  EXPECT_EQ(connected.get().session().endpoint, silent_.host());
}

TEST_F(ZkSilentServer, ServersThatAreAllSilentAreAllTriedAgain) {
  one_.blackhole(Direction::kToServer);
  two_.blackhole(Direction::kToServer);
  ClientOptions options;
  options.connect_timeout = 2s;
  EXPECT_THROW(Client::connect(url(), options), Error);
  one_.heal();
  two_.heal();
  EXPECT_EQ(Client::connect(url()).session().state, SessionState::connected);
}

// The operator was told that the eviction did not happen in time. The operator's next steps rely on
// the entry being there.
TEST_F(ZkSilentServer, EvictionIsNotDoneAfterItsCallerWasTold) {
  Client holder = Client::connect("zk://" + zk_.hosts() + "/silent");
  Lock lock = holder.mutex("job").acquire();
  ClientOptions options;
  options.connect_timeout = 2s;
  Client operators = Client::connect("zk://" + one_.host() + "/silent", options);
  const auto entries = operators.inspect("job").entries;
  ASSERT_EQ(entries.size(), 1u);
  one_.cut();
  EXPECT_THROW(operators.evict("job", entries.at(0).id), Error);
  one_.heal();
  // This request comes after all requests that were still to be sent.
  ASSERT_TRUE(test::eventually("an answer", [&] {
    try {
      operators.inspect("job");
      return true;
    } catch (const Error&) {
      return false;
    }
  }));
  EXPECT_EQ(operators.inspect("job").entries.size(), 1u);
  EXPECT_NO_THROW(lock.verify());
  EXPECT_TRUE(operators.evict("job", entries.at(0).id));
}

}  // namespace
}  // namespace baton::chaos
