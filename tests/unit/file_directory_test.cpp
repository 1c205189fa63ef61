// Which directories may hold a file store.
#include "file/fs_check.h"
#include "file/store_dir.h"
#include "support/temp_dir.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

namespace baton::file {
namespace {

struct stat directory_status(mode_t mode, uid_t owner, gid_t group = 500) {
  struct stat status {};
  status.st_mode = S_IFDIR | mode;
  status.st_uid = owner;
  status.st_gid = group;
  return status;
}

const std::vector<gid_t> kOurGroups = {1000, 500};

std::optional<Errc> opening(const std::string& path) {
  try {
    StoreDir store(path);
    return std::nullopt;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(path.substr(0, path.find_last_not_of('/') + 1)),
              std::string::npos)
        << e.what();
    return e.errc();
  }
}

TEST(FileSystems, NetworkAndUserSpaceOnesAreRefused) {
  for (const unsigned long magic :
       {0x6969UL, 0x517BUL, 0xFF534D42UL, 0xFE534D42UL, 0x65735546UL, 0x01021997UL, 0x5346414FUL,
        0x00C36400UL, 0x73757245UL, 0x01161970UL, 0x7461636FUL, 0x0BD00BD0UL, 0x47504653UL,
        0x19830326UL}) {
    EXPECT_TRUE(refused_file_system(magic)) << std::hex << magic;
  }
}

TEST(FileSystems, LocalOnesAreFine) {
  for (const unsigned long magic :
       {static_cast<unsigned long>(EXT4_SUPER_MAGIC), static_cast<unsigned long>(TMPFS_MAGIC),
        static_cast<unsigned long>(BTRFS_SUPER_MAGIC), 0x58465342UL,
        static_cast<unsigned long>(OVERLAYFS_SUPER_MAGIC)}) {
    EXPECT_FALSE(refused_file_system(magic)) << std::hex << magic;
  }
}

TEST(FileSystems, SignExtendedMagicIsRecognised) {
  EXPECT_TRUE(refused_file_system(static_cast<unsigned long>(static_cast<int>(0xFF534D42))));
}

TEST(DirectoryRights, OurOwnPrivateDirectoryIsFine) {
  const auto verdict = check_directory(directory_status(0700, 1000), 1000, kOurGroups);
  EXPECT_FALSE(verdict.refused);
  EXPECT_EQ(verdict.modes.file, 0600u);
  EXPECT_FALSE(check_directory(directory_status(0755, 1000), 1000, kOurGroups).refused);
}

TEST(DirectoryRights, WritableForOthersIsRefusedWithAndWithoutSticky) {
  for (const mode_t mode : {0777, 01777, 0702, 02777}) {
    EXPECT_EQ(check_directory(directory_status(mode, 1000), 1000, kOurGroups).refused,
              Errc::permission_denied);
  }
}

TEST(DirectoryRights, SomebodyElsesDirectoryIsRefused) {
  EXPECT_EQ(check_directory(directory_status(0755, 0), 1000, kOurGroups).refused,
            Errc::permission_denied);
  EXPECT_EQ(check_directory(directory_status(0770, 1000), 1000, kOurGroups).refused,
            Errc::permission_denied);
}

TEST(DirectoryRights, AGroupsDirectoryIsForItsOwnerAndItsMembers) {
  for (const auto& status : {directory_status(02770, 0, 500), directory_status(02770, 1000, 77),
                             directory_status(02770, 1234, 500)}) {
    const auto verdict = check_directory(status, 1000, kOurGroups);
    EXPECT_FALSE(verdict.refused) << verdict.why;
    EXPECT_TRUE(verdict.modes.group);
    EXPECT_EQ(verdict.modes.file, 0660u);
    EXPECT_EQ(verdict.modes.directory, 02770u);
  }
}

TEST(DirectoryRights, AGroupsDirectoryIsRefusedToOthersAndToRoot) {
  for (const uid_t user : {uid_t{1000}, uid_t{0}}) {
    for (const mode_t mode : {02770, 02775, 03770}) {
      const auto verdict = check_directory(directory_status(mode, 1234, 77), user, kOurGroups);
      EXPECT_EQ(verdict.refused, Errc::permission_denied) << user;
      EXPECT_NE(verdict.why.find("group 77"), std::string::npos) << verdict.why;
    }
  }
  EXPECT_TRUE(check_directory(directory_status(02770, 1000, 77), 0, {0}).refused);
  EXPECT_FALSE(check_directory(directory_status(02770, 0, 77), 0, {0}).refused);
}

TEST(StoreDirectory, LastComponentIsMadePrivateWhateverTheUmask) {
  const test::TempDir temp;
  const mode_t before = ::umask(0);
  EXPECT_EQ(opening(temp / "made"), std::nullopt);
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat((temp / "made").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  ASSERT_EQ(::stat((temp / "made/locks").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  EXPECT_EQ(opening(temp / "made///"), std::nullopt);
}

TEST(StoreDirectory, MissingParentIsAConnectionFailure) {
  const test::TempDir temp;
  EXPECT_EQ(opening(temp / "missing/store"), Errc::connection_failed);
}

TEST(StoreDirectory, PlainFileIsAConnectionFailure) {
  const test::TempDir temp;
  ::close(::open((temp / "file").c_str(), O_CREAT | O_WRONLY, 0600));
  EXPECT_EQ(opening(temp / "file"), Errc::connection_failed);
}

TEST(StoreDirectory, SymbolicLinkIsRefusedWithAndWithoutSlash) {
  const test::TempDir temp;
  ASSERT_EQ(::mkdir((temp / "real").c_str(), 0700), 0);
  ASSERT_EQ(::symlink("real", (temp / "link").c_str()), 0);
  EXPECT_EQ(opening(temp / "link"), Errc::permission_denied);
  EXPECT_EQ(opening(temp / "link/"), Errc::permission_denied);
}

TEST(StoreDirectory, WorldWritableIsRefused) {
  const test::TempDir temp;
  ASSERT_EQ(::mkdir((temp / "open").c_str(), 0700), 0);
  ASSERT_EQ(::chmod((temp / "open").c_str(), 01777), 0);
  EXPECT_EQ(opening(temp / "open"), Errc::permission_denied);
}

TEST(StoreDirectory, SymbolicLinkInsideIsRefused) {
  const test::TempDir temp;
  ASSERT_EQ(::mkdir((temp / "store").c_str(), 0700), 0);
  ASSERT_EQ(::mkdir((temp / "elsewhere").c_str(), 0700), 0);
  ASSERT_EQ(::symlink("../elsewhere", (temp / "store/clients").c_str()), 0);
  try {
    StoreDir store(temp / "store");
    FAIL() << "a link was followed";
  } catch (const Error& e) {
    EXPECT_EQ(e.errc(), Errc::store_error) << e.what();
  }
}

TEST(StoreDirectory, FilesOfAGroupAreForTheGroupWhateverTheUmask) {
  const test::TempDir temp;
  ASSERT_EQ(::mkdir((temp / "group").c_str(), 0700), 0);
  ASSERT_EQ(::chmod((temp / "group").c_str(), 02770), 0);
  const mode_t before = ::umask(0077);
  const StoreDir store(temp / "group");
  const UniqueFd fd = store.create_file(store.root(), "made", 0);
  ::umask(before);
  ASSERT_TRUE(fd);
  struct stat status {};
  ASSERT_EQ(::fstat(fd.get(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0660u);
  EXPECT_EQ(status.st_nlink, 1u);
  ASSERT_EQ(::stat((temp / "group/locks").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 02770u);
}

// Root may enter every directory, so permissions do not keep root out of a directory that another
// user can change. StoreDir must refuse it.
TEST(StoreDirectory, AStrangersGroupDirectoryIsRefusedToRootToo) {
  if (::geteuid() != 0) return;  // other users cannot open it; see DirectoryRights
  const test::TempDir temp;
  const std::string path = temp / "group";
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  ASSERT_EQ(::chown(path.c_str(), 65'534, 65'533), 0);
  ASSERT_EQ(::chmod(path.c_str(), 02770), 0);
  EXPECT_EQ(opening(path), Errc::permission_denied);
  EXPECT_NE(::access((path + "/clients").c_str(), F_OK), 0) << "something was made in it";
  ASSERT_EQ(::chown(path.c_str(), 0, 65'533), 0);
  ASSERT_EQ(::chmod(path.c_str(), 02770), 0);
  EXPECT_EQ(opening(path), std::nullopt) << "root's own, for a group of root's choice";
}

TEST(StoreDirectory, NothingCanBeMadeInARemovedDirectory) {
  const test::TempDir temp;
  const StoreDir store(temp / "store");
  ASSERT_TRUE(store.make_directory(store.locks(), "a"));
  const UniqueFd removed = open_directory(store.locks(), "a");
  ASSERT_EQ(::unlinkat(store.locks(), "a", AT_REMOVEDIR), 0);
  EXPECT_FALSE(store.create_file(removed.get(), "queue", 0));
  EXPECT_FALSE(for_each_entry(removed.get(), [](std::string_view) {}));
}

}  // namespace
}  // namespace baton::file
