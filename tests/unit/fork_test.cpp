// Forks a process that uses baton. Each check runs in a child, which returns the result in its exit
// code.
#include <baton/baton.h>

#include "support/sanitized.h"
#include "support/temp_dir.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <stop_token>
#include <string>
#include <thread>

namespace baton {
namespace {

using namespace std::chrono_literals;

// Runs f in a child and returns true if f returns true there. An alarm limits the time.
bool in_fork(const std::function<bool()>& f) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(20);
    bool ok = false;
    try {
      ok = f();
    } catch (...) {
    }
    ::_exit(ok ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Errc code_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.errc();
  }
  return Errc{};
}

class Fork : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (test::kThreadSanitizer) GTEST_SKIP() << "a thread sanitizer cannot follow a fork";
    url_ = GetParam() ? "file://" + directory_.path() + "/locks" : "memory:fork-test";
  }
  test::TempDir directory_;
  std::string url_;
};

TEST_P(Fork, ChildHasNothingAndParentKeepsAll) {
  auto client = Client::connect(url_);
  auto mutex = client.mutex("a");
  auto lock = mutex.acquire_for(10s);
  EXPECT_TRUE(in_fork([&] { return !lock.valid() && lock.state() == LockState::lost; }));
  EXPECT_TRUE(in_fork([&] { return lock.lost_reason() == Errc::forked; }));
  EXPECT_TRUE(
      in_fork([&] { return lock.valid_for() == 0ms && !lock.lost_token().stop_requested(); }));
  EXPECT_TRUE(
      in_fork([&] { return code_of([&] { (void)mutex.acquire_for(1s); }) == Errc::forked; }));
  EXPECT_TRUE(in_fork([&] { return code_of([&] { (void)mutex.try_lock(); }) == Errc::forked; }));
  EXPECT_TRUE(in_fork([&] { return code_of([&] { (void)client.list(); }) == Errc::forked; }));
  EXPECT_TRUE(in_fork([&] { return client.session().state == SessionState::closed; }));
  EXPECT_TRUE(in_fork([&] {
    { Lock gone = std::move(lock); }
    client.close();
    return true;
  }));
  lock.verify();
  EXPECT_TRUE(lock.valid());
  EXPECT_FALSE(client.mutex("a").try_acquire().has_value());
}

TEST_P(Fork, ChildAnswersAsyncCallsToo) {
  auto client = Client::connect(url_);
  auto mutex = client.mutex("a");
  EXPECT_TRUE(in_fork([&] {
    Errc code{};
    mutex.acquire_async({}, [&](Result<Lock> r) { code = r ? Errc{} : r.error().errc(); });
    return code == Errc::forked;
  }));
}

TEST_P(Fork, ChildMayOpenAClientOfItsOwn) {
  if (test::sanitized()) GTEST_SKIP() << "a sanitizer's own locks do not survive a fork";
  auto client = Client::connect(url_);
  auto lock = client.mutex("a").acquire_for(10s);
  const auto url = url_;
  EXPECT_TRUE(in_fork([&] {
    auto own = Client::connect(url);
    // memory: the child has its own store, in which the lock is free.
    const auto taken = own.mutex("a").try_acquire();
    return taken.has_value() == !GetParam() && own.mutex("b").acquire_for(10s).valid() &&
           own.inspect("a").entries.size() == 1;
  }));
  lock.verify();
}

TEST_P(Fork, WhileOthersAcquireNeverHangs) {
  auto client = Client::connect(url_);
  std::stop_source stop;
  std::thread busy([&, mutex = client.mutex("b")]() mutable {
    while (!stop.stop_requested()) (void)mutex.acquire_for(10s);
  });
  auto lock = client.mutex("a").acquire_for(10s);
  for (int i = 0; i < test::scaled(100); ++i) {
    EXPECT_TRUE(in_fork([&] {
      return !lock.valid() &&
             code_of([&] { (void)client.mutex("b").acquire_for(1s); }) == Errc::forked;
    })) << i;
  }
  stop.request_stop();
  busy.join();
  lock.verify();
}

INSTANTIATE_TEST_SUITE_P(, Fork, ::testing::Bool(), [](const auto& rig) {
  return rig.param ? std::string("file") : std::string("memory");
});

}  // namespace
}  // namespace baton
