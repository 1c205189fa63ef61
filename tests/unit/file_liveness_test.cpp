// The liveness files of clients, and the FIFOs (bells) on which clients receive events.
#include "file/liveness.h"
#include "support/temp_dir.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>

namespace baton::file {
namespace {

class LivenessTest : public ::testing::Test {
 protected:
  std::string file(char kind, ClientId id) const {
    return store.path() + "/clients/" + client_file_name(kind, id);
  }
  Alive test(ClientId id) const { return test_liveness(store.clients(), 'c', id); }

  test::TempDir temp;
  StoreDir store{temp / "store"};
};

TEST_F(LivenessTest, LivesUntilTheDescriptorIsClosed) {
  std::optional<Liveness> ann(std::in_place, store, "ann:1");
  const ClientId id = ann->id();
  EXPECT_EQ(test(id), Alive::yes);
  EXPECT_EQ(read_label(store.clients(), id), "ann:1");
  EXPECT_EQ(::access(file('t', id).c_str(), F_OK), -1) << "the unfinished name is gone";
  ann.reset();
  EXPECT_EQ(test(id), Alive::no);
}

TEST_F(LivenessTest, MissingFileMeansDead) { EXPECT_EQ(test(ClientId{17}), Alive::no); }

TEST_F(LivenessTest, TestingAndClosingDoesNotEndIt) {
  Liveness ann(store, "ann");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(test(ann.id()), Alive::yes);
  const UniqueFd another(::open(file('c', ann.id()).c_str(), O_RDWR | O_CLOEXEC));
  ::close(::dup(another.get()));
  EXPECT_EQ(test(ann.id()), Alive::yes);
}

TEST_F(LivenessTest, SurvivesMovingItsDescriptor) {
  Liveness ann(store, "ann");
  const int before = ann.descriptor();
  ann.move_above(before + 5);
  EXPECT_GT(ann.descriptor(), before + 5);
  EXPECT_EQ(test(ann.id()), Alive::yes);
}

TEST_F(LivenessTest, ACopyKeepsItAlive) {
  std::optional<Liveness> ann(std::in_place, store, "ann");
  const ClientId id = ann->id();
  UniqueFd guardian(::fcntl(ann->descriptor(), F_DUPFD_CLOEXEC, 0));
  ann.reset();
  EXPECT_EQ(test(id), Alive::yes);
  guardian.reset();
  EXPECT_EQ(test(id), Alive::no);
}

TEST_F(LivenessTest, AForkIsNoCopy) {
  std::optional<Liveness> ann(std::in_place, store, "ann");
  const ClientId id = ann->id();
  int ready[2];
  int over[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(over), 0);
  const pid_t child = ::fork();
  char byte = 0;
  if (child == 0) {
    ::close(over[1]);
    if (::write(ready[1], &byte, 1) == 1) byte = 1;
    [[maybe_unused]] const auto n = ::read(over[0], &byte, 1);  // until the parent closes its end
    ::_exit(0);
  }
  ASSERT_EQ(::read(ready[0], &byte, 1), 1) << "the child runs, and has closed its copies";
  EXPECT_EQ(test(id), Alive::yes);
  ann.reset();
  EXPECT_EQ(test(id), Alive::no);
  EXPECT_EQ(ring_bell(store.clients(), id, 1), Rung::dead);
  for (const int fd : {ready[0], ready[1], over[0], over[1]}) ::close(fd);
  ::waitpid(child, nullptr, 0);
}

TEST_F(LivenessTest, BellSaysWhatWasRung) {
  Liveness ann(store, "ann");
  EXPECT_EQ(ring_bell(store.clients(), ann.id(), 42), Rung::heard);
  EXPECT_EQ(ring_bell(store.clients(), ann.id(), 43), Rung::heard);
  std::uint64_t hashes[8];
  ASSERT_EQ(ann.drain_bell(hashes, 8), 2u);
  EXPECT_EQ(hashes[0], 42u);
  EXPECT_EQ(hashes[1], 43u);
  EXPECT_EQ(ann.drain_bell(hashes, 8), 0u) << "an empty bell does not wait";
}

TEST_F(LivenessTest, FullBellCountsAsHeard) {
  Liveness ann(store, "ann");
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_EQ(ring_bell(store.clients(), ann.id(), 1), Rung::heard) << i;
  }
}

TEST_F(LivenessTest, NobodyHearsTheBellOfTheDead) {
  std::optional<Liveness> ann(std::in_place, store, "ann");
  const ClientId id = ann->id();
  ann.reset();
  EXPECT_EQ(ring_bell(store.clients(), id, 1), Rung::dead) << "no listener";
  ASSERT_EQ(::unlink(file('b', id).c_str()), 0);
  EXPECT_EQ(ring_bell(store.clients(), id, 1), Rung::dead) << "no bell";
}

TEST_F(LivenessTest, LinksAreNotFollowed) {
  Liveness ann(store, "ann");
  ASSERT_EQ(::symlink(file('c', ann.id()).c_str(), file('c', ClientId{5}).c_str()), 0);
  EXPECT_EQ(test(ClientId{5}), Alive::unknown) << "what cannot be tested is not dead";
}

TEST_F(LivenessTest, RemovedFilesAreGone) {
  Liveness ann(store, "ann");
  ann.remove_files();
  EXPECT_NE(::access(file('c', ann.id()).c_str(), F_OK), 0);
  EXPECT_NE(::access(file('b', ann.id()).c_str(), F_OK), 0);
}

}  // namespace
}  // namespace baton::file
