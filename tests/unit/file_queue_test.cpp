// The rules of queue files and their generations.
#include "common/seam/lock_name.h"
#include "file/lock_queue.h"
#include "support/temp_dir.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace baton::file {
namespace {

constexpr ClientId kAnn{1};
constexpr ClientId kBob{2};

TEST(FileNames, RoundTrip) {
  const GenerationId id{7, 0x00ab};
  EXPECT_EQ(queue_file_name(id), "queue.7.00000000000000ab");
  EXPECT_EQ(parse_queue_file_name("queue.7.00000000000000ab"), id);
  for (const char* bad : {"queue.", "queue.0.00000000000000ab", "queue.07.00000000000000ab",
                          "queue.7.ab", "queue.7", "queue.-1.00000000000000ab",
                          "queue.99999999999.00000000000000ab", "Queue.7.00000000000000ab"}) {
    EXPECT_FALSE(parse_queue_file_name(bad)) << bad;
  }
  EXPECT_EQ(parse_entry_id(entry_id(kBob, 17))->nonce, 17u);
  EXPECT_EQ(parse_entry_id(entry_id(kBob, 17))->client, kBob);
  for (const char* bad : {"", "-", "0000000000000002-", "0000000000000002-x", "2-17",
                          "000000000000000g-17", "0000000000000002-18446744073709551616"}) {
    EXPECT_FALSE(parse_entry_id(bad)) << bad;
  }
}

TEST(FileNames, NestedLocksHaveDirectoriesOfTheirOwn) {
  EXPECT_EQ(lock_directories(*parse_lock_name("a")), std::vector<std::string>{"a"});
  EXPECT_EQ(lock_directories(*parse_lock_name("a/b/c")),
            (std::vector<std::string>{"a,", "b,", "c"}));
}

class Queue : public ::testing::Test {
 protected:
  Queue() {
    EXPECT_TRUE(store.make_directory(store.locks(), "x"));
    directory = open_directory(store.locks(), "x");
  }
  std::shared_ptr<QueueFile> make(std::uint32_t number = 1) {
    return QueueFile::create(store, directory.get(), {number, next_salt++});
  }
  std::shared_ptr<QueueFile> other(const QueueFile& file) {
    return QueueFile::open(directory.get(), file.id());
  }
  std::string path(const QueueFile& file) { return store.path() + "/locks/x/" + file.name(); }

  test::TempDir temp;
  StoreDir store{temp / "store"};
  UniqueFd directory;
  std::uint64_t next_salt = 1;
};

TEST_F(Queue, FirstJoinWritesTheHeader) {
  const auto file = make();
  EXPECT_TRUE(file->empty());
  EXPECT_EQ(file->join(kAnn, 5, 1000), 1u);
  EXPECT_EQ(file->first_token(), 1000u);
  EXPECT_EQ(file->token(1), 1001u);
  EXPECT_EQ(file->client(1), kAnn);
  EXPECT_TRUE(file->in_line(1));
}

TEST_F(Queue, OfTwoHeadersTheFirstCounts) {
  const auto ann = make();
  const auto bob = other(*ann);  // bob also sees an empty file
  EXPECT_EQ(ann->join(kAnn, 1, 1000), 1u);
  EXPECT_EQ(bob->join(kBob, 1, 2000), 3u) << "record 2 is a second header, and void";
  EXPECT_EQ(bob->first_token(), 1000u);
  EXPECT_EQ(bob->token(3), 1003u);
  EXPECT_FALSE(bob->in_line(2));
}

TEST_F(Queue, SealedQueueRefusesLateJoiners) {
  const auto ann = make();
  const auto bob = other(*ann);
  ASSERT_EQ(ann->join(kAnn, 1, 1000), 1u);
  bob->seal();
  EXPECT_EQ(ann->join(kAnn, 2, 0), std::nullopt);
  EXPECT_TRUE(ann->frozen());
  EXPECT_EQ(ann->end(), 2u);
  EXPECT_TRUE(bob->in_line(1)) << "who stood in line before still does";
}

TEST_F(Queue, SealOfAnEmptyFileMakesItsHeaderVoid) {
  const auto ann = make();
  other(*ann)->seal();
  EXPECT_EQ(ann->join(kAnn, 1, 1000), std::nullopt);
  EXPECT_TRUE(ann->drained());
}

TEST_F(Queue, RecordsBeyondTheCapacityAreVoid) {
  const auto file = make();
  const auto late = other(*file);
  for (std::uint32_t i = 1; i < capacity_of(1); ++i) ASSERT_EQ(file->join(kAnn, i, 1000), i);
  EXPECT_TRUE(file->frozen());
  EXPECT_FALSE(late->frozen()) << "it has not looked yet";
  EXPECT_EQ(late->join(kBob, 1, 2000), std::nullopt);
  EXPECT_TRUE(late->frozen());
  EXPECT_EQ(late->end(), capacity_of(1));
}

TEST_F(Queue, FloorIsBelowEverybodyInLine) {
  const auto file = make();
  for (std::uint64_t i = 1; i <= 4; ++i) ASSERT_TRUE(file->join(kAnn, i, 1000));
  EXPECT_EQ(file->floor(), 1u);
  set_flag(file->record(2), RecordFlag::evicted);
  EXPECT_EQ(file->floor(), 1u);
  set_flag(file->record(1), RecordFlag::withdrawn);
  EXPECT_EQ(file->floor(), 3u);
  set_flag(file->record(3), RecordFlag::dead);
  set_flag(file->record(4), RecordFlag::withdrawn);
  EXPECT_TRUE(file->drained());
}

TEST_F(Queue, FlagsAreSeenThroughOtherMappings) {
  const auto file = make();
  ASSERT_TRUE(file->join(kAnn, 1, 1000));
  const auto seen = other(*file);
  EXPECT_FALSE(set_flag(file->record(1), RecordFlag::evicted));
  EXPECT_TRUE(has_flag(seen->record(1), RecordFlag::evicted));
  EXPECT_TRUE(set_flag(seen->record(1), RecordFlag::evicted)) << "it was set before";
}

TEST_F(Queue, HalfARecordAfterAPowerCutEndsTheGeneration) {
  const auto file = make();
  ASSERT_TRUE(file->join(kAnn, 1, 1000));
  std::ofstream(path(*file), std::ios::app | std::ios::binary) << "torn";
  file->refresh();
  EXPECT_TRUE(file->frozen());
  EXPECT_EQ(file->end(), 2u);
}

TEST_F(Queue, ZerosInsteadOfAHeaderEndTheGeneration) {
  const auto file = make();
  std::ofstream(path(*file), std::ios::app | std::ios::binary) << std::string(128, '\0');
  file->refresh();
  EXPECT_TRUE(file->frozen());
  EXPECT_TRUE(file->drained());
}

TEST_F(Queue, RemovedFileTakesNoJoins) {
  const auto file = make();
  ASSERT_TRUE(file->join(kAnn, 1, 1000));
  ASSERT_EQ(::unlink(path(*file).c_str()), 0);
  EXPECT_EQ(file->join(kAnn, 2, 0), std::nullopt);
}

TEST_F(Queue, LinksAndFifosAreRefused) {
  const auto file = make();
  ASSERT_EQ(::link(path(*file).c_str(), (temp / "second").c_str()), 0);
  EXPECT_THROW(other(*file), Error);
  ASSERT_EQ(::unlink(path(*file).c_str()), 0);
  ASSERT_EQ(::symlink((temp / "second").c_str(), path(*file).c_str()), 0);
  EXPECT_THROW(other(*file), Error);
  ASSERT_EQ(::unlink(path(*file).c_str()), 0);
  ASSERT_EQ(::mkfifo(path(*file).c_str(), 0600), 0);
  EXPECT_THROW(other(*file), Error);
}

TEST_F(Queue, DescriptorCanBeClosedAndOpenedAgain) {
  const auto file = make();
  ASSERT_TRUE(file->join(kAnn, 1, 1000));
  file->close_descriptor();
  EXPECT_TRUE(file->in_line(1));
  EXPECT_TRUE(file->reopen(directory.get()));
  EXPECT_EQ(file->join(kAnn, 2, 0), 2u);
  file->close_descriptor();
  ASSERT_EQ(::unlink(path(*file).c_str()), 0);
  EXPECT_FALSE(file->reopen(directory.get()));
  EXPECT_TRUE(file->frozen());
}

TEST_F(Queue, JoinsOfManyThreadsGetDifferentPlaces) {
  const auto first = make(4);
  ASSERT_TRUE(first->join(kAnn, 1, 1000));
  std::vector<std::uint32_t> places[4];
  std::vector<std::thread> threads;
  for (auto& mine : places) {
    threads.emplace_back([&, file = other(*first)] {
      for (std::uint64_t i = 0; i < 900; ++i) mine.push_back(*file->join(kBob, i, 0));
    });
  }
  for (auto& thread : threads) thread.join();
  std::vector<std::uint32_t> all;
  for (const auto& mine : places) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  EXPECT_EQ(all.back(), 3601u);
}

}  // namespace
}  // namespace baton::file
