// The session of the file store, called directly.
#include <baton/client.h>

#include "common/seam/lock_name.h"
#include "file/backend.h"
#include "support/eventually.h"
#include "support/temp_dir.h"

#include <gtest/gtest.h>

#include <semaphore>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace baton::file {
namespace {

using namespace std::chrono_literals;

struct Deaf : SessionListener {
  void session_ended(std::error_code, const std::string&) override {}
  void session_resumed() override {}
};

// One client, called from the test's thread. Each call waits for its answer.
class Node {
 public:
  explicit Node(const std::string& directory) {
    BackendOptions options{};
    options.label = "node";
    options.log = [this](LogLevel, std::string_view text) { log += std::string(text) + "\n"; };
    backend = make_backend(directory, options).value();
    ask<std::unique_ptr<internal::Session>>(
        [&](auto answer) { backend->open(deaf, std::move(answer)); },
        [&](auto result) { session = std::move(result).value(); });
  }
  ~Node() {
    if (backend) backend->stop();
  }

  template <class T, class F, class G>
  void ask(F question, G take) {
    std::binary_semaphore done(0);
    backend->loop().run([&] {
      question(Answer<T>([&](Result<T> result) {
        take(std::move(result));
        done.release();
      }));
    });
    ASSERT_TRUE(done.try_acquire_for(30s));
  }
  template <class T, class F>
  Result<T> get(F question) {
    std::optional<Result<T>> out;
    ask<T>(question, [&](Result<T> result) { out.emplace(std::move(result)); });
    return out ? std::move(*out) : Result<T>(Error(Errc::timeout, "no answer"));
  }

  Result<Standing> join(const std::string& lock, std::uint64_t nonce) {
    return get<Standing>([&](auto a) { session->join(name(lock), Nonce{nonce}, std::move(a)); });
  }
  Standing look(const std::string& lock, std::uint64_t nonce) {
    return get<Standing>([&](auto a) { session->look(name(lock), Nonce{nonce}, {}, std::move(a)); })
        .value();
  }
  void withdraw(const std::string& lock, std::uint64_t nonce) {
    get<WithdrawResult>([&](auto a) {
      session->withdraw(name(lock), Nonce{nonce}, std::move(a));
    }).value();
  }
  bool verify(const std::string& lock, std::uint64_t nonce) {
    return get<bool>([&](auto a) { session->verify(name(lock), Nonce{nonce}, std::move(a)); })
        .value();
  }
  bool peek(const std::string& lock) {
    return get<bool>([&](auto a) { session->peek(name(lock), std::move(a)); }).value();
  }
  bool evict(const std::string& lock, const std::string& id) {
    return get<bool>([&](auto a) { session->evict(name(lock), id, std::move(a)); }).value();
  }
  std::vector<std::string> list(const std::string& prefix = "") {
    return get<std::vector<std::string>>([&](auto a) { session->list(prefix, std::move(a)); })
        .value();
  }
  LockSnapshot inspect(const std::string& lock) {
    return get<LockSnapshot>([&](auto a) { session->inspect(name(lock), std::move(a)); }).value();
  }
  void close() {
    get<Done>([&](auto a) { session->close(std::move(a)); }).value();
  }
  void crash() {  // closes the descriptors, as the kernel does for a killed process
    std::binary_semaphore done(0);
    backend->loop().run([&] {
      session.reset();
      done.release();
    });
    done.acquire();
  }
  // Releases a semaphore when the watch reports an event.
  void watch(const std::string& lock, const Ticket& ticket, std::counting_semaphore<>& fired) {
    std::binary_semaphore done(0);
    backend->loop().run([&] {
      session->watch(name(lock), ticket, {}, [&](WatchEvent) { fired.release(); });
      done.release();
    });
    done.acquire();
  }
  static LockName name(const std::string& text) { return parse_lock_name(text).value(); }

  Deaf deaf;
  std::string log;
  std::unique_ptr<internal::Backend> backend;
  std::unique_ptr<internal::Session> session;
};

class FileSessionTest : public ::testing::Test {
 protected:
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      if (!entry.is_directory()) names.push_back(entry.path().filename());
    }
    return names;
  }
  test::TempDir temp;
  const std::string directory = temp / "store";
};

TEST_F(FileSessionTest, FirstHoldsAndSecondSeesItAhead) {
  Node ann(directory), bob(directory);
  const Standing first = ann.join("a", 1).value();
  ASSERT_EQ(first.view.tickets.size(), 1u);
  EXPECT_EQ(first.view.tickets[0].ours, Nonce{1});
  const Standing second = bob.join("a", 1).value();
  ASSERT_EQ(second.view.tickets.size(), 2u);
  EXPECT_EQ(second.view.tickets[0].id, first.view.tickets[0].id);
  EXPECT_FALSE(second.view.tickets[0].ours);
  EXPECT_GT(second.token, first.token);
  EXPECT_EQ(ann.join("a", 1)->token, first.token) << "the same nonce finds the same ticket";
  EXPECT_TRUE(ann.verify("a", 1));
  EXPECT_FALSE(bob.verify("a", 1));
}

TEST_F(FileSessionTest, WithdrawWakesTheForeignOneBehind) {
  Node ann(directory), bob(directory);
  ASSERT_TRUE(ann.join("a", 1));
  const Standing waiting = bob.join("a", 1).value();
  std::counting_semaphore<> fired(0);
  bob.watch("a", waiting.view.tickets[0], fired);
  EXPECT_FALSE(fired.try_acquire());
  ann.withdraw("a", 1);
  EXPECT_TRUE(fired.try_acquire_for(30s));
  EXPECT_EQ(bob.look("a", 1).view.tickets.size(), 1u);
}

TEST_F(FileSessionTest, CrashWakesTheOneBehind) {
  Node ann(directory), bob(directory);
  ASSERT_TRUE(ann.join("a", 1));
  const Standing waiting = bob.join("a", 1).value();
  std::counting_semaphore<> fired(0);
  bob.watch("a", waiting.view.tickets[0], fired);
  ann.crash();
  EXPECT_TRUE(fired.try_acquire_for(30s));
  EXPECT_EQ(bob.look("a", 1).view.tickets.size(), 1u);
}

TEST_F(FileSessionTest, WatchOfATicketThatIsGoneFires) {
  Node ann(directory);
  ASSERT_TRUE(ann.join("a", 1));
  const Standing waiting = ann.join("a", 2).value();
  ann.withdraw("a", 1);
  std::counting_semaphore<> fired(0);
  ann.watch("a", waiting.view.tickets[0], fired);
  EXPECT_TRUE(fired.try_acquire_for(30s));
}

TEST_F(FileSessionTest, EvictionIsSeenWithoutAskingAndFiresTheOwnersWatch) {
  Node ann(directory), bob(directory);
  const Standing held = ann.join("a", 1).value();
  const Standing waiting = bob.join("a", 1).value();
  std::counting_semaphore<> own(0), behind(0);
  ann.watch("a", held.view.tickets[0], own);
  bob.watch("a", waiting.view.tickets[0], behind);
  EXPECT_FALSE(held.sign->evicted());
  EXPECT_TRUE(bob.evict("a", held.view.tickets[0].id));
  EXPECT_TRUE(held.sign->evicted());
  EXPECT_TRUE(own.try_acquire_for(30s));
  EXPECT_TRUE(behind.try_acquire_for(30s));
  EXPECT_TRUE(ann.look("a", 1).view.tickets.empty());
  EXPECT_FALSE(bob.evict("a", held.view.tickets[0].id)) << "only once";
  EXPECT_FALSE(bob.evict("a", "nonsense"));
  EXPECT_FALSE(bob.evict("never-used", held.view.tickets[0].id));
}

TEST_F(FileSessionTest, WithdrawFromTheMiddleRedirectsTheOneBehind) {
  Node ann(directory), bob(directory), eve(directory);
  const Standing first = ann.join("a", 1).value();
  ASSERT_TRUE(bob.join("a", 1));
  const Standing third = eve.join("a", 1).value();
  EXPECT_EQ(third.view.omitted_ahead, 1u);
  std::counting_semaphore<> fired(0);
  eve.watch("a", third.view.tickets[0], fired);
  bob.withdraw("a", 1);
  EXPECT_TRUE(fired.try_acquire_for(30s));
  const Standing now = eve.look("a", 1);
  ASSERT_EQ(now.view.tickets.size(), 2u);
  EXPECT_EQ(now.view.tickets[0].id, first.view.tickets[0].id);
}

TEST_F(FileSessionTest, OperatorsSeeWhoStandsInLine) {
  Node ann(directory), bob(directory);
  ASSERT_TRUE(ann.join("a/b", 1));
  ASSERT_TRUE(bob.join("a/b", 1));
  ASSERT_TRUE(bob.join("a", 2));
  ASSERT_TRUE(bob.join("z", 3));
  bob.withdraw("z", 3);
  const LockSnapshot snapshot = bob.inspect("a/b");
  ASSERT_EQ(snapshot.entries.size(), 2u);
  EXPECT_LT(snapshot.entries[0].token, snapshot.entries[1].token);
  EXPECT_EQ(snapshot.entries[0].label, "node");
  EXPECT_LE(snapshot.entries[0].since, std::chrono::system_clock::now());
  EXPECT_EQ(ann.list(), (std::vector<std::string>{"a", "a/b"}));
  EXPECT_EQ(ann.list("a/"), std::vector<std::string>{"a/b"});
  EXPECT_EQ(ann.list("b"), std::vector<std::string>{});
  EXPECT_TRUE(ann.peek("a"));
  EXPECT_FALSE(ann.peek("z"));
  EXPECT_FALSE(ann.peek("never/used"));
}

TEST_F(FileSessionTest, CloseLeavesOnlyTheTokens) {
  {
    Node ann(directory), bob(directory);
    ASSERT_TRUE(ann.join("a/b", 1));
    ASSERT_TRUE(bob.join("a/b", 1));
    ann.close();
    EXPECT_TRUE(bob.verify("a/b", 1));
    bob.close();
  }
  ASSERT_EQ(files().size(), 1u);
  EXPECT_TRUE(files()[0].starts_with("tokens."));
  EXPECT_TRUE(std::filesystem::is_empty(directory + "/locks"));
}

TEST_F(FileSessionTest, CrashedClientIsTidiedUpByTheNext) {
  {
    Node ann(directory);
    ASSERT_TRUE(ann.join("a/b", 1));
    ann.crash();
  }
  EXPECT_GT(files().size(), 1u);
  Node bob(directory);
  EXPECT_EQ(bob.list(), std::vector<std::string>{});
  bob.close();
  EXPECT_EQ(files().size(), 1u);
  EXPECT_TRUE(std::filesystem::is_empty(directory + "/locks"));
}

TEST_F(FileSessionTest, TicketsGoWithTheirFile) {
  Node ann(directory);
  const std::uint64_t token = ann.join("a", 1)->token;
  std::filesystem::remove_all(directory + "/locks/a");
  EXPECT_TRUE(ann.look("a", 1).view.tickets.empty());
  EXPECT_FALSE(ann.verify("a", 1));
  EXPECT_GT(ann.join("a", 2)->token, token);
}

TEST_F(FileSessionTest, DamagedCounterFailsTheJoinAndLeavesNoTicket) {
  Node ann(directory);
  ASSERT_TRUE(ann.join("a", 1));
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.is_directory()) continue;
    std::fstream(entry.path(), std::ios::in | std::ios::out | std::ios::binary) << "garbage!";
  }
  const auto result = ann.join("b", 2);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().errc(), Errc::store_error);
  EXPECT_NE(std::string(result.error().what()).find("token counter"), std::string::npos);
  EXPECT_EQ(ann.list(), std::vector<std::string>{"a"});
}

TEST_F(FileSessionTest, ThousandsOfLocksAndTicketsNeedFewDescriptors) {
  Node ann(directory);
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = descriptors();
  for (std::uint64_t i = 0; i < 200; ++i) {
    ASSERT_TRUE(ann.join("lock" + std::to_string(i), 10'000 + i));
  }
  for (std::uint64_t i = 1; i <= 3000; ++i) ASSERT_TRUE(ann.join("one", i));
  EXPECT_LE(descriptors(), before + 40);
  for (std::uint64_t i = 1; i <= 3000; ++i) {
    ASSERT_EQ(ann.look("one", i).view.tickets.size(), 1u) << i;
    ann.withdraw("one", i);
  }
  ann.close();
  EXPECT_EQ(files().size(), 1u);
}

// A client that gives up must keep no mapping. Otherwise a server that tries a million names runs
// out of mappings.
TEST_F(FileSessionTest, GivingUpLeavesNothingMapped) {
  const auto mapped = [] {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);) count += line.find("/queue.") != line.npos;
    return count;
  };
  const std::size_t before = mapped();
  Client holder = Client::connect("file://" + directory);
  Client waiter = Client::connect("file://" + directory);
  std::vector<baton::Lock> held;
  for (int i = 0; i < 20; ++i) held.push_back(holder.mutex("n" + std::to_string(i)).acquire());
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(waiter.mutex("n" + std::to_string(i)).try_acquire_for(5ms).has_value());
  }
  EXPECT_TRUE(test::eventually("the maps of those who gave up to go",
                               [&] { return mapped() <= before + held.size(); }));
}

TEST_F(FileSessionTest, InfoNamesTheLivenessDescriptor) {
  Node ann(directory);
  const SessionInfo info = ann.session->info();
  EXPECT_EQ(info.backend, "file");
  EXPECT_EQ(info.endpoint, directory);
  EXPECT_EQ(info.timeout, std::chrono::milliseconds::max());
  EXPECT_EQ(info.state, SessionState::connected);
  EXPECT_GE(info.liveness_fd, 0);
}

}  // namespace
}  // namespace baton::file
