// The queue of one lock over several files (generations), used by several clients at once.
#include "common/seam/lock_name.h"
#include "file/sweep.h"
#include "file/lock_queue.h"
#include "support/temp_dir.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace baton::file {
namespace {

class Generations : public ::testing::Test {
 protected:
  // A client with its own view of the store, as in another process.
  struct Other {
    explicit Other(const StoreDir& store, const std::string& lock = "x")
        : liveness(std::in_place, store, "other"),
          clients(store, liveness->id()),
          tokens(store, "00000000000000b1"),
          queue(store, &tokens, clients, *parse_lock_name(lock)) {}
    void die() { liveness.reset(); }
    std::optional<Liveness> liveness;
    Clients clients;
    TokenCounter tokens;
    LockQueue queue;
  };

  static void withdraw(const QueuedTicket& ticket) {
    set_flag(ticket.record(), RecordFlag::withdrawn);
  }
  static QueuedTicket ahead(Other& who, const QueuedTicket& ticket) {
    std::size_t omitted = 0;
    who.clients.new_look();
    return who.queue.ahead(ticket, omitted);
  }
  std::vector<std::string> files(const std::string& below = "/locks/x") const {
    std::vector<std::string> names;
    if (!std::filesystem::exists(store.path() + below)) return names;
    for (const auto& entry : std::filesystem::directory_iterator(store.path() + below)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }
  // Creates an empty generation that sorts after all others of that number.
  void make_generation(std::uint32_t number) {
    const UniqueFd directory(
        ::open((store.path() + "/locks/x").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(QueueFile::create(store, directory.get(), {number, ~std::uint64_t{0}}));
  }

  test::TempDir temp;
  StoreDir store{temp / "store"};
};

TEST_F(Generations, TwoClientsShareOneFile) {
  Other ann(store), bob(store);
  const QueuedTicket first = ann.queue.join(1);
  const QueuedTicket second = bob.queue.join(1);
  EXPECT_LT(first.rank(), second.rank());
  EXPECT_FALSE(ahead(ann, first));
  EXPECT_EQ(ahead(bob, second).rank(), first.rank());
  EXPECT_EQ(ann.queue.behind(first).rank(), second.rank());
  EXPECT_EQ(files().size(), 1u);
  withdraw(first);
  EXPECT_FALSE(ahead(bob, second));
}

// After a power cut the token counter has skipped ahead, but a queue file that survived has not.
// Joins in this file would get tokens a second time.
TEST_F(Generations, WhatAnotherBootLeftNumbersNothing) {
  std::uint64_t before = 0;
  {
    Other ann(store);
    for (std::uint64_t i = 0; i < 20; ++i) before = ann.queue.join(i).rank();
    ann.die();
  }
  ASSERT_EQ(files().size(), 1u);
  const std::string left = store.path() + "/locks/x/" + files().front();
  // As after a power cut: only a few records are left, and the header is of another boot.
  ASSERT_EQ(::truncate(left.c_str(), 3 * sizeof(QueueRecord)), 0);
  const UniqueFd file(::open(left.c_str(), O_RDWR | O_CLOEXEC));
  QueueRecord header{};
  ASSERT_EQ(::pread(file.get(), &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
  ++header.boot;
  ASSERT_EQ(::pwrite(file.get(), &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));

  Other bob(store);
  const QueuedTicket ticket = bob.queue.join(1);
  EXPECT_GT(ticket.rank(), before);
  EXPECT_FALSE(ahead(bob, ticket));
}

TEST_F(Generations, FullFileIsFollowedByALargerOneAndKeepsItsOrder) {
  Other ann(store), bob(store);
  std::vector<QueuedTicket> places;
  for (std::uint64_t i = 0; i < 400; ++i) {
    places.push_back((i % 2 == 0 ? ann : bob).queue.join(i));
    ASSERT_TRUE(i == 0 || places[i].rank() > places[i - 1].rank());
  }
  EXPECT_EQ(files().size(), 3u);
  for (std::size_t i = 1; i < places.size(); ++i) {
    ASSERT_EQ(ahead(i % 2 == 0 ? ann : bob, places[i]).rank(), places[i - 1].rank());
    ASSERT_EQ((i % 2 == 0 ? bob : ann).queue.behind(places[i - 1]).rank(), places[i].rank());
  }
  for (std::size_t i = 0; i + 1 < places.size(); ++i) {
    withdraw(places[i]);
    ASSERT_FALSE(ahead(i % 2 == 0 ? bob : ann, places[i + 1]));
    (i % 2 == 0 ? ann : bob).queue.prune();
  }
  EXPECT_EQ(files().size(), 1u) << "drained generations are removed";
}

TEST_F(Generations, HigherGenerationFreezesTheLowerOneAndStandsBehindIt) {
  Other ann(store);
  const QueuedTicket first = ann.queue.join(1);
  make_generation(1);  // as by a client that read the directory before Ann created her file
  Other bob(store);
  const QueuedTicket second = bob.queue.join(1);
  EXPECT_NE(second.generation->file->id(), first.generation->file->id());
  EXPECT_EQ(ahead(bob, second).rank(), first.rank());
  EXPECT_EQ(ann.queue.behind(first).rank(), second.rank());
  const QueuedTicket third = ann.queue.join(2);
  EXPECT_EQ(third.generation->file->id(), second.generation->file->id());
  EXPECT_GT(third.rank(), second.rank());
}

TEST_F(Generations, StragglersLowerGenerationIsIgnoredAndSealedByTheNext) {
  Other ann(store);
  const QueuedTicket first = ann.queue.join(1);
  // A file that sorts before Ann's, made by a client that was stopped in the middle of its join.
  const UniqueFd directory(
      ::open((store.path() + "/locks/x").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto stale = QueueFile::create(store, directory.get(), {1, 0});
  ASSERT_TRUE(stale);
  EXPECT_FALSE(ahead(ann, first));
  Other bob(store);
  const QueuedTicket second = bob.queue.join(1);
  EXPECT_EQ(ahead(bob, second).rank(), first.rank());
  EXPECT_EQ(stale->join(ClientId{99}, 1, 5), std::nullopt) << "he joined behind a seal";
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(Generations, UnusedQueueLeavesNothing) {
  Other ann(store, "x/y"), bob(store, "x/y");
  withdraw(ann.queue.join(1));
  const QueuedTicket second = bob.queue.join(1);
  EXPECT_FALSE(ann.queue.remove_if_unused()) << "Bob stands in line";
  withdraw(second);
  EXPECT_TRUE(ann.queue.remove_if_unused());
  EXPECT_TRUE(files("/locks").empty());
  const QueuedTicket again = bob.queue.join(2);
  EXPECT_GT(again.rank(), second.rank());
  EXPECT_TRUE(bob.queue.stands(again));
}

TEST_F(Generations, DeadClientsAreSkippedAndMarked) {
  Other ann(store), bob(store), eve(store);
  const QueuedTicket first = ann.queue.join(1);
  const QueuedTicket second = bob.queue.join(1);
  const QueuedTicket third = eve.queue.join(1);
  EXPECT_TRUE(eve.queue.busy());
  bob.die();
  EXPECT_EQ(ahead(eve, third).rank(), first.rank());
  EXPECT_TRUE(has_flag(second.record(), RecordFlag::dead));
  ann.die();
  EXPECT_FALSE(ahead(eve, third));
  withdraw(third);
  eve.clients.new_look();
  EXPECT_FALSE(eve.queue.busy());
}

TEST_F(Generations, NestedLocksNeverSeeEachOther) {
  Other outer(store, "a"), inner(store, "a/b");
  const QueuedTicket one = outer.queue.join(1);
  const QueuedTicket two = inner.queue.join(1);
  EXPECT_FALSE(ahead(outer, one));
  EXPECT_FALSE(ahead(inner, two));
  withdraw(one);
  EXPECT_TRUE(outer.queue.remove_if_unused());
  EXPECT_TRUE(inner.queue.stands(two));
}

TEST_F(Generations, TicketInARemovedFileDoesNotStand) {
  Other ann(store);
  const QueuedTicket ticket = ann.queue.join(1);
  EXPECT_TRUE(ann.queue.stands(ticket));
  std::filesystem::remove_all(store.path() + "/locks/x");
  EXPECT_FALSE(ann.queue.stands(ticket));
  const QueuedTicket again = ann.queue.join(2);
  EXPECT_TRUE(ann.queue.stands(again));
  EXPECT_GT(again.rank(), ticket.rank());
}

TEST_F(Generations, CounterThatWentBackIsNoticed) {
  Other ann(store);
  const QueuedTicket first = ann.queue.join(1);
  // A later generation with smaller tokens. Only a counter that was set back by hand can cause
  // this.
  make_generation(2);
  const UniqueFd directory(
      ::open((store.path() + "/locks/x").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_TRUE(QueueFile::open(directory.get(), {2, ~std::uint64_t{0}})->join(ClientId{99}, 1, 5));
  Other bob(store);
  try {
    bob.queue.join(1);
    FAIL() << "a token went back";
  } catch (const Error& e) {
    EXPECT_EQ(e.errc(), Errc::store_error);
    EXPECT_NE(std::string(e.what()).find("went back"), std::string::npos) << e.what();
  }
  EXPECT_TRUE(ann.queue.stands(first));
}

// The file was numbered by hand, or by a counter that was removed later. The next file would begin
// with smaller tokens, and the client that first joins there would not notice.
TEST_F(Generations, FileNumberedAboveTheCounterIsRefused) {
  Other ann(store);
  withdraw(ann.queue.join(1));
  const std::string left = store.path() + "/locks/x/" + files().front();
  const UniqueFd file(::open(left.c_str(), O_RDWR | O_CLOEXEC));
  QueueRecord header{};
  ASSERT_EQ(::pread(file.get(), &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
  ++header.token;
  ASSERT_EQ(::pwrite(file.get(), &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
  Other bob(store);
  EXPECT_THROW(bob.queue.join(1), Error);
  EXPECT_FALSE(bob.queue.busy());
}

// Access to a mapped page that is no longer in the file would end the process.
TEST_F(Generations, CounterThatWasCutShortIsRefused) {
  Other ann(store);
  ann.queue.join(1);
  int cut = 0;
  for (const auto& entry : std::filesystem::directory_iterator(store.path())) {
    if (!entry.path().filename().string().starts_with("tokens.")) continue;
    std::filesystem::resize_file(entry.path(), 0);
    ++cut;
  }
  ASSERT_GT(cut, 0);
  EXPECT_THROW(ann.queue.join(2), Error);
}

TEST_F(Generations, LastGenerationIsFollowedByNone) {
  Other ann(store);
  withdraw(ann.queue.join(1));
  make_generation(~std::uint32_t{0});
  const UniqueFd directory(
      ::open((store.path() + "/locks/x").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  QueueFile::open(directory.get(), {~std::uint32_t{0}, ~std::uint64_t{0}})->seal();
  const auto before = files().size();
  Other bob(store);
  EXPECT_THROW(bob.queue.join(1), Error);
  EXPECT_LE(files().size(), before);
}

TEST_F(Generations, DescriptorsCanBeClosedAtAnyTime) {
  Other ann(store), bob(store);
  const QueuedTicket first = ann.queue.join(1);
  ann.queue.close_descriptors();
  EXPECT_FALSE(ann.queue.has_descriptors());
  const QueuedTicket second = bob.queue.join(1);
  EXPECT_TRUE(ann.queue.stands(first));
  EXPECT_EQ(ann.queue.behind(first).rank(), second.rank());
  ann.queue.close_descriptors();
  const QueuedTicket third = ann.queue.join(2);
  EXPECT_EQ(ahead(ann, third).rank(), second.rank());
}

TEST_F(Generations, SweepRemovesWhatTheDeadLeft) {
  std::optional<Other> ann(std::in_place, store, "a/b");
  ann->queue.join(1);
  Other bob(store, "c");
  const QueuedTicket alive = bob.queue.join(1);
  ann->die();
  ann.reset();
  EXPECT_EQ(files("/clients").size(), 4u);
  sweep(store, bob.clients, real_clock(), kNever);
  EXPECT_EQ(files("/clients").size(), 2u);
  EXPECT_EQ(files("/locks"), std::vector<std::string>{"c"});
  EXPECT_TRUE(bob.queue.stands(alive));
}

}  // namespace
}  // namespace baton::file
