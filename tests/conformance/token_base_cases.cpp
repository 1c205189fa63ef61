// ?token_base=N: the base is added to every token and recorded in the store. All clients of a store
// must use the same base.
#include "conformance/fixture.h"
#include "support/temp_dir.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace baton::conformance {
namespace {

constexpr std::uint64_t kBase = std::uint64_t{1} << 60;

// Refuses a write whose token is smaller than the newest one, as docs/guarantees.md asks of every
// resource.
struct FencedResource {
  std::uint64_t newest = 0;
  bool write(std::uint64_t token) {
    if (token < newest) return false;
    newest = token;
    return true;
  }
};

TEST_P(TokenBases, IsAddedToEveryToken) {
  std::uint64_t plain = 0;
  {
    auto client = open();
    plain = client.mutex("a").acquire(patient()).token();
    ASSERT_LT(plain, kBase);
  }
  ASSERT_TRUE(in_line("a", 0));
  auto client = connect(kBase);
  EXPECT_EQ(client.session().token_base, kBase);
  auto mutex = client.mutex("a");
  auto lock = mutex.acquire(patient());
  EXPECT_GT(lock.token(), kBase + plain);
  EXPECT_LT(lock.token(), 2 * kBase);
  auto waiting = later(mutex);
  ASSERT_TRUE(in_line("a", 2));
  const auto snapshot = client.inspect("a");
  ASSERT_EQ(snapshot.entries.size(), 2U);
  EXPECT_EQ(snapshot.entries[0].token, lock.token());
  EXPECT_GT(snapshot.entries[1].token, lock.token());
  lock.release();
  ASSERT_TRUE(ready(waiting));
  auto next = waiting.get();
  EXPECT_EQ(next.token(), snapshot.entries[1].token);
  next.release();
  ASSERT_TRUE(mutex.try_lock_for(kLong));
  EXPECT_GT(mutex.token(), next.token());
  mutex.unlock();
}

TEST_P(TokenBases, MustBeTheSameForAllClientsOfAStore) {
  auto first = connect(kBase);
  auto lock = first.mutex("a").acquire(patient());
  const auto other = refusal(url(kBase + 1));
  EXPECT_NE(other.find(std::to_string(kBase)), std::string::npos) << other;
  EXPECT_NE(other.find(std::to_string(kBase + 1)), std::string::npos) << other;
  const auto none = refusal(rig().url());
  EXPECT_NE(none.find("token_base=" + std::to_string(kBase)), std::string::npos) << none;
  EXPECT_NE(refusal(url(0)), "");
  auto second = connect(kBase);
  EXPECT_EQ(second.inspect("a").entries.at(0).token, lock.token());
  lock.release();
  EXPECT_GT(second.mutex("a").acquire(patient()).token(), lock.token());
}

TEST_P(TokenBases, IsKeptWhenNoClientIsLeft) {
  if (std::string_view(GetParam().name) == "memory") return;  // destroyed with its last client
  { auto first = connect(kBase); }
  EXPECT_NE(refusal(rig().url()), "");
  EXPECT_NE(refusal(url(kBase - 1)), "");
  EXPECT_EQ(connect(kBase).session().token_base, kBase);
}

TEST_P(TokenBases, IsRefusedWhileAnyLockHasAnEntry) {
  auto plain = open();
  auto lock = plain.mutex("a/b").acquire(patient());
  const auto text = refusal(url(kBase));
  EXPECT_NE(text.find("a/b"), std::string::npos) << text;
  EXPECT_TRUE(lock.valid());
  EXPECT_EQ(open().session().token_base, 0U) << "nothing was recorded";
  lock.release();
  ASSERT_TRUE(in_line("a/b", 0));
  EXPECT_EQ(connect(kBase).session().token_base, kBase);
}

TEST_P(TokenBases, ZeroIsTheSameAsNone) {
  auto zero = connect(0);
  auto plain = open();
  EXPECT_EQ(zero.session().token_base, 0U);
  auto lock = zero.mutex("a").acquire(patient());
  EXPECT_EQ(plain.inspect("a").entries.at(0).token, lock.token());
}

TEST_P(TokenBases, OfTwoAtOnceOneIsTaken) {
  constexpr int kClients = 6;
  std::atomic<bool> go{false};
  std::vector<std::optional<Client>> clients(kClients);
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&, i] {
      while (!go) std::this_thread::yield();
      auto client = Client::try_connect(url(kBase + static_cast<std::uint64_t>(i % 2)), options());
      if (client) {
        clients[i] = std::move(client).value();
      } else {
        EXPECT_EQ(client.error().errc(), Errc::invalid_argument) << client.error().what();
      }
    });
  }
  go = true;
  for (auto& thread : threads) thread.join();
  std::vector<std::uint64_t> taken;
  for (auto& client : clients) {
    if (client) taken.push_back(client->session().token_base);
  }
  ASSERT_EQ(taken.size(), kClients / 2U);
  EXPECT_EQ(std::count(taken.begin(), taken.end(), taken.front()), kClients / 2);
}

TEST_P(TokenBases, LeavesNoTraceInTheListOfLocks) {
  auto client = connect(kBase);
  EXPECT_TRUE(client.list().empty());
  auto lock = client.mutex("a").acquire(patient());
  EXPECT_EQ(client.list(), std::vector<std::string>{"a"});
}

TEST_P(TokenBases, KeepsFencedDataWritableAfterAMove) {
  FencedResource resource;
  const test::TempDir directory;
  {
    auto before = Client::connect("file://" + (directory / "old"), options());
    ASSERT_TRUE(resource.write(before.mutex("a").acquire(patient()).token()));
  }
  {
    auto client = open();
    EXPECT_FALSE(resource.write(client.mutex("a").acquire(patient()).token()));
  }
  ASSERT_TRUE(in_line("a", 0));
  auto client = connect(resource.newest);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(resource.write(client.mutex("a").acquire(patient()).token()));
  }
}

// The session that replaces an ended session has the same token base.
TEST_P(Faults, TokenBaseStaysWhenTheSessionEnds) {
  BATON_NEEDS(Can::end_sessions);
  ASSERT_EQ(rig().locks(), 0U);
  auto client = Client::connect(rig().url() + "?token_base=" + std::to_string(kBase), options());
  auto lock = client.mutex("a").acquire(patient());
  const auto first = lock.token();
  EXPECT_GT(first, kBase);
  rig().end_sessions();
  ASSERT_TRUE(soon("the loss", [&] { return !lock.valid(); }));
  std::atomic<std::uint64_t> second{0};
  client.mutex("a").acquire_async(
      patient(), [&](Result<Lock> result) { second = result ? result->token() : 1; });
  ASSERT_TRUE(soon("the next grant", [&] { return second != 0; }));
  EXPECT_GT(second, first);
  client.close();
}

}  // namespace

void TokenBases::SetUp() {
  Conformance::SetUp();
  // Connects the observer now: it has no token base, so it cannot connect after a test has recorded
  // one.
  ASSERT_EQ(rig().locks(), 0U);
}

std::string TokenBases::url(std::uint64_t base) {
  return rig().url() + "?token_base=" + std::to_string(base);
}

std::string TokenBases::refusal(const std::string& url) {
  const auto client = Client::try_connect(url, options());
  if (client) return {};
  EXPECT_EQ(client.error().errc(), Errc::invalid_argument) << client.error().what();
  return client.error().what();
}

}  // namespace baton::conformance
