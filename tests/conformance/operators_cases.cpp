// The calls for operators: inspect, list, evict, labels and the session.
#include "conformance/fixture.h"

#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

namespace baton::conformance {
namespace {

using std::chrono::system_clock;

TEST_P(Operators, InspectShowsHolderAndWaitersInOrder) {
  auto one = open("first one");
  auto two = open("second");
  auto three = open("third \xc3\xa4");
  const auto before = system_clock::now();
  auto lock = one.mutex("a").acquire(patient());
  auto second = later(two.mutex("a"));
  ASSERT_TRUE(in_line("a", 2));
  auto third = later(three.mutex("a"));
  ASSERT_TRUE(in_line("a", 3));
  const auto snapshot = three.inspect("a");
  EXPECT_EQ(snapshot.name, "a");
  ASSERT_EQ(snapshot.entries.size(), 3u);
  EXPECT_EQ(snapshot.entries[0].label, "first one");
  EXPECT_EQ(snapshot.entries[1].label, "second");
  EXPECT_EQ(snapshot.entries[2].label, "third \xc3\xa4");
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& entry = snapshot.entries[i];
    EXPECT_FALSE(entry.id.empty());
    EXPECT_GE(entry.since, before - 2s);
    EXPECT_LE(entry.since, system_clock::now() + 2s);
    if (i > 0) {
      EXPECT_GT(entry.token, snapshot.entries[i - 1].token);
      EXPECT_NE(entry.id, snapshot.entries[i - 1].id);
    }
  }
  lock.release();
  ASSERT_TRUE(ready(second));
  second.get().release();
  ASSERT_TRUE(ready(third));
}

TEST_P(Operators, InspectOfAFreeLockIsEmpty) {
  auto client = open();
  EXPECT_TRUE(client.inspect("never/used").entries.empty());
  EXPECT_EQ(client.inspect("never/used").name, "never/used");
  client.mutex("a").acquire(patient()).release();
  EXPECT_TRUE(client.inspect("a").entries.empty());
  EXPECT_TRUE(client.list().empty());
}

TEST_P(Operators, DefaultLabelNamesHostAndProcess) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  const auto label = client.inspect("a").entries.front().label;
  char host[256] = {};
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  EXPECT_EQ(label, std::string(host) + ":" + std::to_string(::getpid()));
}

TEST_P(Operators, LongestLabelIsKeptWhole) {
  const std::string label(256, 'L');
  auto client = open(label);
  auto lock = client.mutex("a").acquire(patient());
  EXPECT_EQ(client.inspect("a").entries.front().label, label);
}

TEST_P(Operators, ListIsSortedAndFollowsThePrefix) {
  auto client = open();
  std::vector<Lock> held;
  for (const char* name : {"b", "a/2", "a/1", "ab", "a", "a/1/x"}) {
    held.push_back(client.mutex(name).acquire(patient()));
  }
  using Strings = std::vector<std::string>;
  auto all = client.list();
  EXPECT_EQ(all, (Strings{"a", "a/1", "a/1/x", "a/2", "ab", "b"}));
  EXPECT_EQ(client.list("a"), (Strings{"a", "a/1", "a/1/x", "a/2", "ab"}));
  EXPECT_EQ(client.list("a/"), (Strings{"a/1", "a/1/x", "a/2"}));
  EXPECT_EQ(client.list("a/1"), (Strings{"a/1", "a/1/x"}));
  EXPECT_EQ(client.list("c"), Strings{});
  EXPECT_EQ(client.list("a/1/x/y"), Strings{});
  held.pop_back();
  ASSERT_TRUE(in_line("a/1/x", 0));
  EXPECT_EQ(client.list("a/1"), (Strings{"a/1"}));
}

TEST_P(Operators, ListRefusesWhatBeginsNoName) {
  auto client = open();
  for (const std::string bad : {"/", "a//", "..", "../", "a b", "*", "\n", "a/../"}) {
    if (bad == "..") continue;  // a prefix of "...x", which is legal
    EXPECT_EQ(error_of([&] { (void)client.list(bad); }), Errc::invalid_name) << bad;
  }
  EXPECT_EQ(error_of([&] { (void)client.list(std::string(1 << 20, 'a')); }), Errc::invalid_name);
}

TEST_P(Operators, EvictOfAnUnknownEntryIsFalse) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  const auto id = client.inspect("a").entries.front().id;
  const auto harmless = [&](const std::string& name, const std::string& entry) {
    bool removed = false;
    const auto code = error_of([&] { removed = client.evict(name, entry); });
    EXPECT_FALSE(removed) << entry.substr(0, 40);
    if (code) {
      EXPECT_EQ(*code, Errc::invalid_argument) << entry.substr(0, 40);
    }
  };
  for (const std::string& wrong :
       {std::string(), std::string("x"), std::string("../") + id, id + "x", id + "/",
        std::string("0"), std::string("-1"), std::string("18446744073709551616"),
        std::string("a\0b", 3), std::string("\n"), std::string(1 << 16, 'e')}) {
    harmless("a", wrong);
  }
  harmless("b", id);  // the id belongs to another lock
  harmless("a/b", id);
  lock.verify();
  EXPECT_TRUE(client.evict("a", id));
  EXPECT_FALSE(client.evict("a", id)) << "only once";
}

// Ids are never used again, so an old id must not evict a later entry.
TEST_P(Operators, EvictByAnOldIdDoesNotHitTheNextEntry) {
  auto client = open();
  std::vector<std::string> old;
  for (int i = 0; i < 20; ++i) {
    auto lock = client.mutex("a").acquire(patient());
    old.push_back(client.inspect("a").entries.front().id);
    for (std::size_t k = 0; k + 1 < old.size(); ++k) EXPECT_FALSE(client.evict("a", old[k]));
    lock.release();
  }
}

TEST_P(Operators, SessionTellsBackendAndState) {
  auto client = open();
  const auto info = client.session();
  const auto url = rig().url();
  EXPECT_EQ(info.backend, url.substr(0, url.find(':')));
  EXPECT_EQ(info.state, SessionState::connected);
  EXPECT_GT(info.timeout, 0ms);
  EXPECT_EQ(info.liveness_fd >= 0, info.backend == "file");
  if (info.backend == "file") {
    EXPECT_EQ(info.endpoint, url.substr(7));
  }
  client.close();
  EXPECT_EQ(client.session().state, SessionState::closed);
}

TEST_P(Operators, InspectWhileTheLineMovesIsNeverTorn) {
  auto client = open();
  auto viewer = open();
  std::atomic<bool> stop{false};
  std::vector<std::jthread> all;
  for (int t = 0; t < 3; ++t) {
    all.emplace_back([&, mutex = client.mutex("a")]() mutable {
      while (!stop) (void)mutex.acquire(patient());
    });
  }
  std::uint64_t last = 0;
  for (int i = 0; i < rig().rounds(scaled(300)); ++i) {
    const auto snapshot = viewer.inspect("a");
    EXPECT_LE(snapshot.entries.size(), 7u);  // 3 threads, each with a new entry and an old one
    for (std::size_t k = 1; k < snapshot.entries.size(); ++k) {
      ASSERT_GT(snapshot.entries[k].token, snapshot.entries[k - 1].token);
    }
    if (!snapshot.entries.empty()) {
      ASSERT_GE(snapshot.entries.front().token, last) << "a holder came back";
      last = snapshot.entries.front().token;
    }
  }
  stop = true;
}

}  // namespace
}  // namespace baton::conformance
