// Three ways to make a child that has a copy of our memory: fork(), and two that run no
// pthread_atfork handler. Each child has a time limit and is killed by its own process id.
#include <baton/baton.h>

#include "common/base/fork_guard.h"
#include "support/sanitized.h"
#include "support/temp_dir.h"

#include <gtest/gtest.h>

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace baton {
namespace {

using namespace std::chrono_literals;

enum class Way { fork, underscore_fork, clone };

pid_t fork_by(Way way) {
  switch (way) {
    case Way::fork:
      return ::fork();
    case Way::underscore_fork:
      return ::_Fork();
    case Way::clone:
      return static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  }
  return -1;
}

// A child that ends by itself or is killed.
class BoundedChild {
 public:
  BoundedChild(Way way, const std::function<bool()>& f) : pid_(fork_by(way)) {
    if (pid_ != 0) return;
    bool ok = false;
    try {
      ok = f();
    } catch (...) {
    }
    ::_exit(ok ? 0 : 1);
  }
  BoundedChild(const BoundedChild&) = delete;
  BoundedChild& operator=(const BoundedChild&) = delete;
  ~BoundedChild() { end(0ms); }

  void kill() const { ::kill(pid_, SIGKILL); }
  // Returns "ok", "wrong", "hung", "died" or "not started".
  std::string end(std::chrono::milliseconds within = 20s) {
    if (pid_ <= 0) return "not started";
    const int handle = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
    pollfd ended{handle, POLLIN, 0};
    const bool in_time = ::poll(&ended, 1, static_cast<int>(within.count())) == 1;
    if (!in_time) kill();
    int status = 0;
    ::waitpid(pid_, &status, 0);
    ::close(handle);
    pid_ = 0;
    if (!in_time) return "hung";
    if (!WIFEXITED(status)) return "died";
    return WEXITSTATUS(status) == 0 ? "ok" : "wrong";
  }

 private:
  pid_t pid_;
};

std::string in_child(Way way, const std::function<bool()>& f) { return BoundedChild(way, f).end(); }

// libasan of g++ 12 does not prepare its allocator for fork(): a child made while another thread
// allocates waits without end for a mutex of the sanitizer (seen in SizeClassAllocator64::
// GetFromAllocator). The other builds run these tests.
constexpr char kNoFork[] = "a sanitizer's own locks do not survive a fork";

class ForkWays : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (test::sanitized()) GTEST_SKIP() << kNoFork;
  }
  test::TempDir directory_;
  const std::string url_ = "file://" + directory_.path() + "/locks";
};

TEST_P(ForkWays, TheChildsCopyIsNotValidAndItsEndFreesNothing) {
  auto client = std::make_unique<Client>(Client::connect(url_));
  auto lock = std::make_unique<Lock>(client->mutex("a").acquire_for(10s));
  EXPECT_EQ(in_child(GetParam(), [&] { return !lock->valid(); }), "ok");
  EXPECT_EQ(in_child(GetParam(), [&] { return lock->state() == LockState::lost; }), "ok");
  EXPECT_EQ(in_child(GetParam(),
                     [&] {
                       lock.reset();
                       client.reset();
                       return true;
                     }),
            "ok");
  auto other = Client::connect(url_);
  const auto second = other.mutex("a").try_acquire();
  EXPECT_FALSE(second.has_value()) << "granted while the parent holds";
  lock->verify();
  EXPECT_TRUE(lock->valid());
}

// The lock of a killed parent becomes free although its child lives. The child closes the
// descriptor that it inherited, at the latest in its first call of baton.
TEST_P(ForkWays, AKilledParentsLockIsFreeAlthoughItsChildLives) {
  std::array<int, 2> ready{};
  std::array<int, 2> finish{};  // closing it ends the grandchild
  ASSERT_EQ(::pipe(ready.data()), 0);
  ASSERT_EQ(::pipe(finish.data()), 0);
  BoundedChild parent(Way::fork, [&] {
    ::close(finish[1]);
    auto client = Client::connect(url_);
    auto lock = client.mutex("a").acquire_for(10s);
    BoundedChild child(GetParam(), [&] {
      const char answer = lock.valid() ? 'v' : 'l';
      if (::write(ready[1], &answer, 1) != 1) return false;
      char none = 0;
      pollfd finished{finish[0], POLLIN, 0};
      return ::poll(&finished, 1, 60'000) == 1 && ::read(finish[0], &none, 1) == 0;
    });
    return child.end(60s) == "ok";
  });
  pollfd said{ready[0], POLLIN, 0};
  ASSERT_EQ(::poll(&said, 1, 20'000), 1);
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'l');
  parent.kill();
  EXPECT_EQ(parent.end(), "died");
  auto client = Client::connect(url_);
  EXPECT_TRUE(client.mutex("a").try_acquire_for(10s)) << "the child keeps the dead parent's lock";
  for (const int fd : {finish[0], finish[1], ready[0], ready[1]}) ::close(fd);
}

TEST_P(ForkWays, TheChildOfAChildIsAnotherProcessToo) {
  const std::uint64_t own = internal::fork_generation();
  EXPECT_EQ(in_child(GetParam(),
                     [&] {
                       return in_child(GetParam(),
                                       [&] { return internal::fork_generation() != own; }) ==
                                  "ok" &&
                              internal::fork_generation() != own;
                     }),
            "ok");
  EXPECT_EQ(in_child(GetParam(),
                     [&] {
                       const std::uint64_t childs = internal::fork_generation();
                       return childs != own && in_child(GetParam(), [&] {
                                                 const auto now = internal::fork_generation();
                                                 return now != own && now != childs;
                                               }) == "ok";
                     }),
            "ok");
  EXPECT_EQ(internal::fork_generation(), own);
}

// If the kernel cannot wipe a page in the child, the process id must show the fork. This runs in
// its own process, because rely_on_process_id() changes the whole process.
TEST_P(ForkWays, TheProcessIdAloneTellsTheChildToo) {
  const auto alone = [&] {
    internal::fork_guard::rely_on_process_id();
    auto client = Client::connect(url_);
    auto lock = std::make_unique<Lock>(client.mutex("a").acquire_for(10s));
    const bool told = in_child(GetParam(), [&] {
                        const bool valid = lock->valid();
                        lock.reset();
                        return !valid;
                      }) == "ok";
    lock->verify();
    auto other = Client::connect(url_);
    return told && lock->valid() && !other.mutex("a").try_acquire().has_value();
  };
  EXPECT_EQ(in_child(Way::fork, alone), "ok");
}

std::string name_of(const ::testing::TestParamInfo<Way>& way) {
  if (way.param == Way::fork) return "fork";
  return way.param == Way::clone ? "clone" : "underscore_fork";
}

INSTANTIATE_TEST_SUITE_P(, ForkWays, ::testing::Values(Way::fork, Way::underscore_fork, Way::clone),
                         name_of);

// A child that shares our memory, as vfork() and posix_spawn() make it, is not a copy. Its calls
// must change nothing for the parent.
TEST(ForkVm, AChildInOurMemoryChangesNothingForUs) {
  if (test::sanitized()) GTEST_SKIP() << "sanitizers know one stack for each thread";
  test::TempDir directory;
  auto client = Client::connect("file://" + directory.path() + "/locks");
  const auto lock = client.mutex("a").acquire_for(10s);
  const std::uint64_t own = internal::fork_generation();
  std::vector<char> stack(1 << 20);
  const auto ask = [](void* held) {
    const bool valid = static_cast<const Lock*>(held)->valid();
    return valid && internal::fork_generation() != 0 ? 0 : 1;
  };
  const pid_t pid = ::clone(ask, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | SIGCHLD,
                            const_cast<Lock*>(&lock));
  ASSERT_GT(pid, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0)
      << "valid() or the generation is wrong in a child in our memory";
  EXPECT_EQ(internal::fork_generation(), own);
  EXPECT_TRUE(lock.valid());
}

// The parent's threads open clients and take locks at the moment of the fork, so that mutexes of
// the store and of the list of stores are locked in some of the children.
TEST(ForkMemory, AChildThatOpensTheSameNameNeverHangsAndFindsNothingTaken) {
  if (test::sanitized()) GTEST_SKIP() << kNoFork;
  const std::string url = "memory:fork-ways";
  auto client = Client::connect(url);
  const auto lock = client.mutex("a").acquire_for(10s);
  std::atomic<bool> stop{false};
  std::thread opens([&] {
    while (!stop) Client::connect(url);
  });
  std::thread locks([&, mutex = client.mutex("b")]() mutable {
    while (!stop) (void)mutex.acquire_for(10s);
  });
  int hung = 0;
  int wrong = 0;
  const int rounds = test::scaled(500);
  for (int i = 0; i < rounds && hung < 3; ++i) {
    BoundedChild child(Way::fork, [&] {
      auto own = Client::connect(url);
      return own.mutex("a").try_acquire().has_value() && own.mutex("b").acquire_for(5s).valid() &&
             !lock.valid();
    });
    const std::string outcome = child.end(20s);
    hung += outcome == "hung" ? 1 : 0;
    wrong += outcome != "hung" && outcome != "ok" ? 1 : 0;
  }
  stop = true;
  opens.join();
  locks.join();
  EXPECT_EQ(hung, 0);
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(lock.valid());
  EXPECT_FALSE(client.mutex("a").try_acquire().has_value());
}

}  // namespace
}  // namespace baton
