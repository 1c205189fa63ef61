// Queues of ten thousand tickets: checks what each waiter costs, and that a process that dies with
// thousands of tickets does not block other clients.
#include "chaos/grants.h"
#include "chaos/process.h"
#include "support/boot_clock.h"
#include "support/child.h"
#include "support/sanitized.h"
#include "support/temp_dir.h"

#include <baton/baton.h>

#include <gtest/gtest.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::kLong;
using test::sanitized;
using test::Stopwatch;

constexpr int kWaiters = 10'000;
constexpr const char* kLock = "chaos/line";

// Waits as long as the number of entries keeps changing, so a slow machine does not fail the test.
::testing::AssertionResult in_line(Client& client, std::size_t count) {
  constexpr std::size_t kStep = 100;
  for (std::size_t before = client.inspect(kLock).entries.size(), now = before;; before = now) {
    const auto moved = in_time(std::to_string(count) + " in line", [&] {
      now = client.inspect(kLock).entries.size();
      return now == count || now > before + kStep || now + kStep < before;
    });
    if (!moved || now == count) return moved;
  }
}

// The waiters that were granted the lock, in this order.
class Served {
 public:
  void add(int who) {
    const std::lock_guard guard(mutex_);
    all_.push_back(who);
  }
  std::vector<int> all() const {
    const std::lock_guard guard(mutex_);
    return all_;
  }
  std::size_t size() const {
    const std::lock_guard guard(mutex_);
    return all_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<int> all_;
};

class Waiters : public ::testing::TestWithParam<std::string> {
 protected:
  std::string url() const {
    return GetParam() == "file" ? "file://" + directory_ / "locks" : "memory:waiters";
  }

 private:
  test::TempDir directory_;
};

TEST_P(Waiters, TenThousandCostMemoryOnlyAndAreServedInJoinOrder) {
  Served served;
  auto client = Client::connect(url());
  auto observer = Client::connect(url());
  auto mutex = client.mutex(kLock);
  auto lock = mutex.acquire({.timeout = kLong});
  const auto park = [&](int who) {
    mutex.acquire_async({}, [&served, who](Result<Lock> r) { served.add(r ? who : -1); });
  };
  park(0);
  ASSERT_TRUE(in_line(observer, 2));
  const int threads = test::threads_of_this_process();
  const int descriptors = test::descriptors_of_this_process();
  ::malloc_trim(0);  // memory that earlier cases have freed must not be used for these waiters
  const long memory = resident_bytes();

  for (int i = 1; i <= kWaiters; ++i) park(i);
  ASSERT_TRUE(in_line(observer, static_cast<std::size_t>(kWaiters) + 2));
  EXPECT_LE(test::threads_of_this_process(), threads);
  EXPECT_LE(test::descriptors_of_this_process(), descriptors);
  const long each = (resident_bytes() - memory) / kWaiters;
  RecordProperty("bytes_per_waiter", static_cast<int>(each));
  if (!sanitized()) {
    EXPECT_LE(each, 4096) << "bytes per waiter";
  }

  const Stopwatch watch;
  lock.release();
  ASSERT_TRUE(in_time("all served", [&] { return static_cast<int>(served.size()) > kWaiters; }));
  RecordProperty("drain_ms", static_cast<int>(watch.elapsed().count()));
  std::vector<int> wanted(static_cast<std::size_t>(kWaiters) + 1);
  std::iota(wanted.begin(), wanted.end(), 0);
  EXPECT_EQ(served.all(), wanted);
  EXPECT_TRUE(in_line(observer, 0));
}

std::string name_of(const ::testing::TestParamInfo<std::string>& store) { return store.param; }
INSTANTIATE_TEST_SUITE_P(Stores, Waiters, ::testing::Values("memory", "file"), name_of);

// Another process of this program with thousands of tickets. The destructor kills and reaps it if
// it still runs.
class Crowd {
 public:
  explicit Crowd(const std::string& url) : pid_(start_self({"--park", url})) {}
  ~Crowd() { kill(); }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  void kill() {
    if (pid_ < 0) return;
    EXPECT_EQ(kill_and_reap(pid_), 128 + SIGKILL) << "it was gone before";
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

int park_role(const char* url, const char* parent) {
  end_with_parent(parent);
  auto client = Client::connect(url);
  auto mutex = client.mutex(kLock);
  std::vector<Lock> kept;  // the first lock that is granted stays held
  for (int i = 0; i < kWaiters; ++i) {
    mutex.acquire_async({}, [&kept](Result<Lock> r) { kept.push_back(std::move(r).value()); });
  }
  for (;;) ::pause();
}

class Crowds : public ::testing::Test {
 protected:
  // All tickets of a dead process are skipped in one step.
  static constexpr auto kBound = sanitized() ? 20s : 3s;

  void expect_nothing_left() {
    EXPECT_TRUE(in_line(*client_, 0));
    client_.reset();
    Client::connect(url_).close();
    EXPECT_EQ(leftovers(directory_ / "locks"), std::vector<std::string>{});
  }

  const test::TempDir directory_;
  const std::string url_ = "file://" + directory_ / "locks";
  std::unique_ptr<Client> client_ = std::make_unique<Client>(Client::connect(url_));
};

TEST_F(Crowds, KilledHolderWithTenThousandTicketsKeepsNobody) {
  Crowd crowd(url_);
  ASSERT_TRUE(in_line(*client_, kWaiters));
  test::Child behind({"wait", url_, kLock, "60000"});
  ASSERT_TRUE(in_line(*client_, kWaiters + 1));
  const Stopwatch watch;
  crowd.kill();
  ASSERT_TRUE(behind.line_with("held"));
  EXPECT_LE(watch.elapsed(), kBound);
  RecordProperty("takeover_ms", static_cast<int>(watch.elapsed().count()));
  EXPECT_EQ(behind.exit_code(), 0);
  expect_nothing_left();
}

TEST_F(Crowds, TenThousandKilledWaitersAreSteppedOver) {
  auto lock = client_->mutex(kLock).acquire({.timeout = kLong});
  Crowd crowd(url_);
  ASSERT_TRUE(in_line(*client_, kWaiters + 1));
  test::Child behind({"wait", url_, kLock, "60000"});
  ASSERT_TRUE(in_line(*client_, kWaiters + 2));
  crowd.kill();
  EXPECT_TRUE(in_line(*client_, 2)) << "tickets of a dead process stay in line";
  lock.verify();
  const Stopwatch watch;
  lock.release();
  ASSERT_TRUE(behind.line_with("held"));
  EXPECT_LE(watch.elapsed(), kBound);
  RecordProperty("takeover_ms", static_cast<int>(watch.elapsed().count()));
  EXPECT_EQ(behind.exit_code(), 0);
  expect_nothing_left();
}

}  // namespace
}  // namespace baton::chaos

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--park") {
    try {
      return baton::chaos::park_role(argv[2], argv[3]);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "baton_waiters_test --park: %s\n", e.what());
      return 1;
    }
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
