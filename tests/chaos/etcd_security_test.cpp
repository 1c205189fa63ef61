// Permissions of users on etcd, tokens that expire, and passwords that must not be shown.
#include "chaos/etcd_security.h"
#include "chaos/grants.h"
#include "support/eventually.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::kLong;
using test::Stopwatch;

constexpr auto kTokenLife = 2s;  // if it is not used

std::chrono::seconds long_hold() {
  const char* const text = std::getenv("BATON_HOLD_SECONDS");
  return std::chrono::seconds(text == nullptr ? 12 : std::atoi(text));
}

// One server with users.
class EtcdUsers : public EtcdSecurity {
 protected:
  void start(bool auth = true) {
    test::EtcdOptions options;
    options.flags = {"--auth-token-ttl=" + std::to_string(kTokenLife.count())};
    etcd_.emplace(options);
    etcd_->add_user(kApp.name, kApp.password, "/app/");
    etcd_->add_user(kReader.name, kReader.password, "/app/", true);
    etcd_->add_user(kOther.name, kOther.password, "/other/");
    if (auth) etcd_->enable_auth(kRoot.password);
  }
  test::EtcdCluster& etcd() { return *etcd_; }
  Client connect(const ClientOptions& options) {
    return Client::connect("etcd://" + etcd_->hosts() + "/app", options);
  }
  // The client may neither wait for the lock nor evict its holder.
  void expect_kept_out(Client& client, const std::string& name, const std::string& entry) {
    auto mutex = client.mutex(name);
    refused(Errc::permission_denied, [&] { (void)mutex.acquire({.timeout = kLong}); });
    refused(Errc::permission_denied, [&] { (void)client.evict(name, entry); });
    std::atomic<int> denied{0};
    mutex.acquire_async({}, [&](Result<Lock> r) {
      denied = !r && r.error().errc() == Errc::permission_denied ? 1 : -1;
    });
    EXPECT_TRUE(eventually("an answer", [&] { return denied != 0; }));
    EXPECT_EQ(denied, 1);
  }

 private:
  std::optional<test::EtcdCluster> etcd_;
};

// Several times, no request is sent for longer than a token lives. The next call, and the next
// watch on a stream that was opened with the old token, need a new one. The sessions are so long
// that a waiter that misses its watch event would wait for the backstop.
TEST_F(EtcdUsers, AHoldAndItsWaitersOutliveTheirTokens) {
  start();
  auto holder = connect(as(kApp));
  auto others = connect(as(kApp));
  auto lock = holder.mutex("job").acquire({.timeout = kLong});
  std::vector<std::unique_ptr<Waiter>> waiters;
  const Stopwatch watch;
  while (watch.elapsed() < long_hold()) {
    std::this_thread::sleep_for(kTokenLife + 1s);
    auto& client = waiters.size() % 2 == 0 ? others : holder;
    waiters.push_back(std::make_unique<Waiter>(client.mutex("job")));
    ASSERT_TRUE(eventually("in line",
                           [&] { return etcd().keys("/app/job/").size() == waiters.size() + 1; }));
    EXPECT_TRUE(lock.valid());
  }
  EXPECT_EQ(lock.state(), LockState::held);
  lock.verify(kLong);
  std::this_thread::sleep_for(kTokenLife + 1s);
  lock.release(kLong);
  for (const auto& waiter : waiters) {
    const Stopwatch handing;
    ASSERT_TRUE(eventually("granted", [&] { return waiter->granted(); }));
    EXPECT_LT(handing.elapsed(), 3s) << "no watch has told it";
    waiter->release();
  }
  EXPECT_TRUE(etcd().keys("/app/").empty());
}

TEST_F(EtcdUsers, AWrongPasswordIsRefusedAtOnce) {
  start();
  const auto text = refused(Errc::permission_denied, [&] { (void)connect(as(kPretender)); });
  expect_says(text, "check the user, the password");
  ClientOptions unknown = as(kApp);
  unknown.credentials.user = "nobody-here";
  refused(Errc::permission_denied, [&] { (void)connect(unknown); });
}

TEST_F(EtcdUsers, WhoHasNoRightToThePrefixIsKeptOutAndToldSo) {
  start();
  auto app = connect(as(kApp));
  auto lock = app.mutex("job").acquire({.timeout = kLong});
  const std::string entry = app.inspect("job").entries.at(0).id;
  const auto kept_out = [&](Client other) {
    expect_kept_out(other, "job", entry);
    refused(Errc::permission_denied, [&] { (void)other.mutex("job").try_acquire(); });
    refused(Errc::permission_denied, [&] { (void)other.inspect("job"); });
    refused(Errc::permission_denied, [&] { (void)other.list(); });
    const auto text = refused(Errc::permission_denied,
                              [&] { (void)other.mutex("new").acquire({.timeout = kLong}); });
    expect_says(text, "permissions of its roles");
  };
  etcd().allow_reading(kOther.name, "/app/~token_base");  // otherwise connect() is refused
  kept_out(connect(as(kOther)));
  // Without a user: older servers grant a lease to every client and refuse all else. Newer servers
  // refuse the lease, and so the client cannot connect.
  std::optional<Client> stranger;
  try {
    stranger.emplace(connect(nobody()));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::permission_denied);
    expect_says(e.what(), "permissions of its roles");
  }
  if (stranger) kept_out(std::move(*stranger));
  lock.verify();
  EXPECT_EQ(app.inspect("job").entries.size(), 1U);
}

// A client that does not know the recorded token base would have smaller tokens than other clients.
TEST_F(EtcdUsers, WhoMayNotReadTheTokenBaseIsRefusedAtOnce) {
  start();
  const auto text = refused(Errc::permission_denied, [&] { (void)connect(as(kOther)); });
  expect_says(text, "/app/~token_base");
  expect_says(text, "permissions of its roles");
  etcd().allow_reading(kOther.name, "/app/~token_base");
  EXPECT_EQ(connect(as(kOther)).session().token_base, 0U);
  // A user of the root may record a token base, but a user that may only read the root may not.
  const std::string url = "etcd://" + etcd().hosts() + "/app?token_base=5000";
  refused(Errc::permission_denied, [&] { (void)Client::connect(url, as(kReader)); });
  EXPECT_EQ(Client::connect(url, as(kApp)).session().token_base, 5000U);
  EXPECT_EQ(Client::connect(url, as(kReader)).session().token_base, 5000U);
  refused(Errc::invalid_argument, [&] { (void)connect(as(kOther)); });
}

TEST_F(EtcdUsers, WhoMayReadLooksAndDoesNotTouch) {
  start();
  auto app = connect(as(kApp));
  auto lock = app.mutex("job").acquire({.timeout = kLong});
  auto reader = connect(as(kReader));
  const auto seen = reader.inspect("job").entries;
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].token, lock.token());
  EXPECT_EQ(reader.list(), std::vector<std::string>{"job"});
  // One attempt on a held lock needs only a look, which this user may do.
  EXPECT_FALSE(reader.mutex("job").try_acquire().has_value());
  refused(Errc::permission_denied, [&] { (void)reader.mutex("free").try_acquire(); });
  expect_kept_out(reader, "job", seen[0].id);
  lock.verify();
}

// After any change of users, the server refuses older tokens.
TEST_F(EtcdUsers, ChangesOfUsersAreNotNoticedByThoseWhoStay) {
  start();
  auto app = connect(as(kApp));
  auto other = connect(as(kApp));
  auto lock = app.mutex("job").acquire({.timeout = kLong});
  etcd().add_user("newcomer", test::kFirstNewPassword, "/new/");
  Waiter waiter(other.mutex("job"));
  ASSERT_TRUE(eventually("in line", [&] { return app.inspect("job").entries.size() == 2; }));
  etcd().change_password(kReader.name, test::kNextNewPassword);
  lock.release(kLong);
  EXPECT_TRUE(eventually(
      "granted", [&] { return waiter.granted(); }, 5s));
  waiter.release();
}

TEST_F(EtcdUsers, WhosePasswordIsChangedIsRefusedAndKeepsWhatItHolds) {
  start();
  auto app = connect(as(kApp));
  auto lock = app.mutex("job").acquire({.timeout = kLong});
  etcd().change_password(kApp.name, test::kLastNewPassword);
  refused(Errc::permission_denied, [&] { (void)app.mutex("another").acquire({.timeout = kLong}); });
  EXPECT_TRUE(lock.valid());
}

TEST_F(EtcdUsers, UsersMayBeTurnedOnWhileAClientIsConnected) {
  start(false);
  auto app = connect(as(kApp));
  auto other = connect(as(kApp));
  // The log is written by a separate thread.
  EXPECT_TRUE(eventually("both say so", [&] {
    return log_.count(LogLevel::warning, "authentication is disabled in the etcd cluster") == 2;
  }));
  auto lock = app.mutex("job").acquire({.timeout = kLong});
  Waiter waiter(other.mutex("job"));
  ASSERT_TRUE(eventually("in line", [&] { return app.inspect("job").entries.size() == 2; }));
  etcd().enable_auth(kRoot.password);
  EXPECT_NO_THROW(app.mutex("another").acquire({.timeout = kLong}).release());
  lock.verify(kLong);
  lock.release(kLong);
  EXPECT_TRUE(eventually(
      "granted", [&] { return waiter.granted(); }, 15s));
  waiter.release();
}

TEST_F(EtcdUsers, UsersMayBeTurnedOffWhileAClientIsConnected) {
  start();
  auto app = connect(as(kApp));
  auto lock = app.mutex("job").acquire({.timeout = kLong});
  etcd().disable_auth();
  std::this_thread::sleep_for(kTokenLife + 1s);
  app.mutex("another").acquire({.timeout = kLong}).release();
  lock.verify(kLong);
  lock.release(kLong);
}

}  // namespace
}  // namespace baton::chaos
