// Permissions of locks on ZooKeeper, and passwords that must not be shown.
#include "chaos/refusals.h"
#include "chaos/zk_raw.h"
#include "chaos/zk_tap.h"
#include "support/canaries.h"
#include "support/eventually.h"
#include "support/log_capture.h"
#include "support/proxy.h"
#include "support/temp_dir.h"
#include "support/zk_server.h"

#include <baton/baton.h>

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <future>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::kLong;

using Rights = std::set<std::string>;

// A user, its password, and base64(sha1("user:password")), by which servers know the user.
struct User {
  const char* name;
  const char* password;
  const char* hash;
  std::string digest() const { return std::string(name) + ":" + password; }
  std::string id() const { return std::string("digest:") + name + ":" + hash; }
};
constexpr User kApp{"app", test::kAppPassword, "F2tlJnPmrXW3y36pXHYGp64lsyI="};
constexpr User kEve{"eve", test::kOtherPassword, "qfUFoahahGBfVafZFTgAazJlTE8="};
constexpr User kOps{"ops", test::kReaderPassword, "tuZUpWyX4Td2vpUO1gNGeKQmjRM="};
constexpr User kPretender{"app", test::kWrongPassword, "3OVnlep6ynNhsmmf2SE4OaYXhQ4="};

// One server for all tests of this process.
test::ZkEnsemble& server() {
  static test::ZkEnsemble one;
  return one;
}

class ZkSecurity : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::zk_installed()) GTEST_FAIL() << "no ZooKeeper server: install zookeeper and a JRE";
    root_ = std::string("/") + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  // After each test: no log line contains a password.
  void TearDown() override {
    for (const auto& [level, line] : log_.lines()) expect_discreet(line, secrets());
  }

  static std::vector<std::string> secrets() {
    std::vector<std::string> all;
    for (const User& user : {kApp, kEve, kOps, kPretender}) {
      all.insert(all.end(), {user.password, user.hash});
    }
    return all;
  }

  ClientOptions nobody() const {
    ClientOptions options;
    options.session_timeout = 40s;  // longer than a restart on a busy machine
    options.connect_timeout = 20s;
    options.log = log_.sink();
    return options;
  }
  ClientOptions as(const User& user) const {
    ClientOptions options = nobody();
    options.credentials.user = user.name;
    options.credentials.password_file = directory_ / std::string(user.hash).substr(0, 4);
    std::ofstream(options.credentials.password_file) << user.password << "\n";
    options.zookeeper.plaintext_auth = true;
    return options;
  }
  Client connect(const ClientOptions& options) const {
    return Client::connect("zk://" + server().hosts() + root_, options);
  }

  static void expect_error(Errc wanted, const std::function<void()>& call) {
    expect_refusal(wanted, secrets(), call);
  }
  // The client may neither wait for the lock, nor try it, nor evict its holder.
  static void expect_kept_out(Client& client, const std::string& name, const std::string& entry) {
    auto mutex = client.mutex(name);
    expect_error(Errc::permission_denied, [&] { (void)mutex.acquire({.timeout = kLong}); });
    expect_error(Errc::permission_denied, [&] { (void)mutex.try_acquire(); });
    expect_error(Errc::permission_denied, [&] { (void)mutex.try_lock(); });
    expect_error(Errc::permission_denied, [&] { (void)client.evict(name, entry); });
    std::atomic<int> denied{0};
    mutex.acquire_async({}, [&](Result<Lock> r) {
      denied = !r && r.error().errc() == Errc::permission_denied ? 1 : -1;
    });
    EXPECT_TRUE(eventually("an answer", [&] { return denied != 0; }));
    EXPECT_EQ(denied, 1);
  }

  // The options are refused before any connection is made.
  void expect_refused_before(Errc wanted, const ClientOptions& options) const {
    const test::Proxy door(server().client_port(0));
    expect_error(wanted, [&] { (void)Client::connect("zk://" + door.host() + root_, options); });
    EXPECT_EQ(door.accepted(), 0U);
  }

  // The session that owns the node.
  static std::int64_t session_of(const std::string& node) {
    for (const auto& [session, nodes] :
         test::parse_dump(server().four_letter(0, "dump")).ephemerals) {
      if (nodes.contains(node)) return session;
    }
    return 0;
  }

  std::string root_;
  const test::TempDir directory_;
  const test::LogCapture log_{};
};

TEST_F(ZkSecurity, NodesAreTheirCreatorsAlone) {
  auto app = connect(as(kApp));
  auto lock = app.mutex("team/job").acquire({.timeout = kLong});
  const std::string entry = app.inspect("team/job").entries.at(0).id;
  RawZk raw(server().hosts(), kApp.digest());
  const Rights mine{kApp.id() + "=31"};
  for (const char* node : {"", "/team", "/team/job"}) {
    EXPECT_EQ(raw.rights(root_ + node), mine) << node;
  }
  EXPECT_EQ(raw.rights(root_ + "/team/job/" + entry), mine);
  std::vector<std::string> names;
  for (const User* user : {static_cast<const User*>(nullptr), &kEve, &kPretender}) {
    RawZk other(server().hosts(), user == nullptr ? "" : user->digest());
    EXPECT_EQ(other.children(root_ + "/team/job", names), ZNOAUTH);
    EXPECT_EQ(other.get(root_ + "/team/job/" + entry), ZNOAUTH);
    EXPECT_EQ(other.remove(root_ + "/team/job/" + entry), ZNOAUTH);
    EXPECT_EQ(other.create(root_ + "/team/job/x-lock-", ZOO_EPHEMERAL | ZOO_SEQUENCE), ZNOAUTH);
  }
  lock.verify();
}

TEST_F(ZkSecurity, OthersAreKeptOutAndToldSo) {
  auto app = connect(as(kApp));
  auto lock = app.mutex("team/job").acquire({.timeout = kLong});
  const std::string entry = app.inspect("team/job").entries.at(0).id;
  for (const auto& options : {as(kEve), as(kPretender), nobody()}) {
    auto other = connect(options);
    expect_kept_out(other, "team/job", entry);
    expect_error(Errc::permission_denied, [&] { (void)other.inspect("team/job"); });
    // A lock that does not exist yet is refused, too.
    expect_error(Errc::permission_denied,
                 [&] { (void)other.mutex("team/new").acquire({.timeout = kLong}); });
  }
  lock.verify();
  EXPECT_EQ(app.inspect("team/job").entries.size(), 1U);
}

TEST_F(ZkSecurity, AReadGroupMayLookAndNotTouch) {
  ClientOptions options = as(kApp);
  options.label = "the app";
  options.zookeeper.read_group = kOps.id();
  auto app = connect(options);
  auto lock = app.mutex("team/job").acquire({.timeout = kLong});
  auto ops = connect(as(kOps));
  const auto seen = ops.inspect("team/job").entries;
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].label, "the app");
  EXPECT_EQ(seen[0].token, lock.token());
  EXPECT_EQ(ops.list(), std::vector<std::string>{"team/job"});
  // One attempt on a held lock needs only a look, which this user may do.
  EXPECT_FALSE(ops.mutex("team/job").try_acquire().has_value());
  expect_error(Errc::permission_denied, [&] { (void)ops.evict("team/job", seen[0].id); });
  expect_error(Errc::permission_denied,
               [&] { (void)ops.mutex("team/job").acquire({.timeout = kLong}); });
  lock.verify();
  RawZk raw(server().hosts(), kApp.digest());
  const Rights wanted{kApp.id() + "=31", kOps.id() + "=1"};
  for (const std::string& node : {root_, root_ + "/team/job", root_ + "/team/job/" + seen[0].id}) {
    EXPECT_EQ(raw.rights(node), wanted) << node;
  }
  auto eve = connect(as(kEve));
  expect_error(Errc::permission_denied, [&] { (void)eve.inspect("team/job"); });
}

TEST_F(ZkSecurity, AReadGroupMayBeTheWorld) {
  ClientOptions options = as(kApp);
  options.zookeeper.read_group = "world:anyone";
  auto app = connect(options);
  auto lock = app.mutex("team/job").acquire({.timeout = kLong});
  auto other = connect(nobody());
  const auto seen = other.inspect("team/job").entries;
  ASSERT_EQ(seen.size(), 1U);
  expect_error(Errc::permission_denied, [&] { (void)other.evict("team/job", seen[0].id); });
  lock.verify();
}

// All clients may use the directory, but only its owner may read the entry of the holder. So no
// watch reports that the entry goes. A waiter behind it looks from time to time, and is granted the
// lock.
TEST_F(ZkSecurity, AWaiterWhoMayNotReadWhoeverIsAheadLooksNowAndThen) {
  auto open = connect(nobody());
  open.mutex("open/to-all").acquire({.timeout = kLong}).release();
  auto app = connect(as(kApp));
  auto lock = app.mutex("open/to-all").acquire({.timeout = kLong});
  Tap tap(server().client_port(0));
  auto client = Client::connect("zk://" + tap.host() + root_, nobody());
  const auto before = tap.seen();
  expect_error(Errc::timeout, [&] { (void)client.mutex("open/to-all").acquire({.timeout = 2s}); });
  EXPECT_LT((tap.seen() - before).requests(), 20) << tap.seen() - before;
  std::atomic<bool> granted{false};
  client.mutex("open/to-all").acquire_async({}, [&](Result<Lock> r) { granted = r.has_value(); });
  EXPECT_TRUE(eventually("in line", [&] { return (tap.seen() - before).create == 2; }));
  EXPECT_FALSE(granted);
  lock.release();
  EXPECT_TRUE(eventually(
      "granted", [&] { return granted.load(); }, 5s));
}

TEST_F(ZkSecurity, CredentialsAreShownAgainAfterAReconnectAndToANewSession) {
  test::Proxy door(server().client_port(0));
  const std::string url = "zk://" + door.host() + root_;
  auto app = Client::connect(url, as(kApp));
  auto second = Client::connect(url, as(kApp));
  const auto entries = [&] { return app.inspect("team/job").entries; };
  auto lock = app.mutex("team/job").acquire({.timeout = kLong});
  std::atomic<bool> granted{false};
  second.mutex("team/job").acquire_async({}, [&](Result<Lock> r) { granted = r.has_value(); });
  ASSERT_TRUE(eventually("in line", [&] { return entries().size() == 2; }));

  server().kill(0);
  server().start(0, door);
  lock.verify(kLong);
  // The waiter's session ends, and it joins again with a new one.
  const std::string waiter = entries().at(1).id;
  ASSERT_TRUE(server().end_session(session_of(root_ + "/team/job/" + waiter)));
  ASSERT_TRUE(eventually("in line again", [&] {
    const auto now = entries();
    return now.size() == 2 && now[1].id != waiter;
  }));
  RawZk raw(server().hosts(), kApp.digest());
  EXPECT_EQ(raw.rights(root_ + "/team/job/" + entries().at(1).id), Rights{kApp.id() + "=31"});
  EXPECT_FALSE(granted);
  lock.release();
  EXPECT_TRUE(eventually("granted", [&] { return granted.load(); }));
}

TEST_F(ZkSecurity, CredentialsAreShownAlsoWhenTheFirstAttemptsToConnectFailed) {
  ClientOptions options = as(kApp);
  options.connect_timeout = kLong;
  test::Proxy door(server().client_port(0));
  server().kill(0);
  auto connecting = std::async(
      std::launch::async, [&] { return Client::connect("zk://" + door.host() + root_, options); });
  server().start(0, door);
  auto app = connecting.get();
  auto lock = app.mutex("team/job").acquire({.timeout = kLong});
  RawZk raw(server().hosts(), kApp.digest());
  EXPECT_EQ(raw.rights(root_ + "/team/job"), Rights{kApp.id() + "=31"});
}

TEST_F(ZkSecurity, APasswordMayComeFromTheEnvironment) {
  ASSERT_EQ(::setenv("BATON_TEST_ZK_PASSWORD", kApp.password, 1), 0);
  ClientOptions options = as(kApp);
  options.credentials.password_file.clear();
  options.credentials.password_env = "BATON_TEST_ZK_PASSWORD";
  auto from_variable = connect(options);
  auto lock = from_variable.mutex("team/job").acquire({.timeout = kLong});
  EXPECT_EQ(connect(as(kApp)).inspect("team/job").entries.size(), 1U) << "another user";
  ::unsetenv("BATON_TEST_ZK_PASSWORD");
  expect_refused_before(Errc::invalid_argument, options);
}

TEST_F(ZkSecurity, CredentialsAreNotSentInTheClearUnasked) {
  ClientOptions options = as(kApp);
  options.zookeeper.plaintext_auth = false;
  expect_refused_before(Errc::invalid_argument, options);
}

TEST_F(ZkSecurity, PasswordsThatCannotBeReadAreRefusedBeforeAnything) {
  ClientOptions none = as(kApp);
  none.credentials.password_file.clear();
  expect_refused_before(Errc::invalid_argument, none);
  ClientOptions missing = as(kApp);
  missing.credentials.password_file += ".not-there";
  expect_refused_before(Errc::invalid_argument, missing);
  ClientOptions empty = as(kApp);
  std::ofstream(empty.credentials.password_file) << "\n" << kApp.password << "\n";
  expect_refused_before(Errc::invalid_argument, empty);
  ClientOptions variable = as(kApp);
  variable.credentials.password_file.clear();
  variable.credentials.password_env = "BATON_TEST_ZK_PASSWORD_UNSET";
  expect_refused_before(Errc::invalid_argument, variable);
  ClientOptions both = as(kApp);
  both.credentials.password_env = "BATON_TEST_ZK_PASSWORD";
  expect_refused_before(Errc::invalid_argument, both);
}

TEST_F(ZkSecurity, ReadGroupsThatMakeNoSenseAreRefusedBeforeAnything) {
  ClientOptions alone = nobody();
  alone.zookeeper.read_group = kOps.id();
  expect_refused_before(Errc::invalid_argument, alone);
  ClientOptions shapeless = as(kApp);
  shapeless.zookeeper.read_group = "everybody";
  expect_refused_before(Errc::invalid_argument, shapeless);
}

TEST_F(ZkSecurity, TlsIsRefusedWhereTheClientLibraryHasNone) {
  ClientOptions options = nobody();
  options.tls = {directory_ / "ca.pem", directory_ / "cert.pem", directory_ / "key.pem"};
  expect_refused_before(Errc::unsupported, options);
  options = as(kApp);
  options.tls.ca_file = directory_ / "ca.pem";
  expect_refused_before(Errc::unsupported, options);
}

TEST_F(ZkSecurity, APasswordIsNotInTheErrorOfAServerThatIsAway) {
  ClientOptions options = as(kApp);
  options.connect_timeout = 1500ms;
  test::Proxy door(server().client_port(0));
  door.cut();
  expect_error(Errc::connection_failed,
               [&] { (void)Client::connect("zk://" + door.host() + root_, options); });
  // The password is not in the messages of a client that loses its server, either.
  door.heal();
  auto app = Client::connect("zk://" + door.host() + root_, options);
  door.cut();
  expect_error(Errc::timeout, [&] { (void)app.inspect("team/job"); });
  expect_error(Errc::timeout, [&] { (void)app.mutex("team/job").acquire({.timeout = 200ms}); });
  EXPECT_FALSE(log_.lines().empty()) << "nothing was said at all";
}

}  // namespace
}  // namespace baton::chaos
