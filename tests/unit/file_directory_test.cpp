// Which directories may carry a file store.
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

namespace baton::internal {
namespace {

struct stat directory_status(mode_t mode, uid_t owner) {
  struct stat status {};
  status.st_mode = S_IFDIR | mode;
  status.st_uid = owner;
  return status;
}

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
  const auto verdict = check_directory(directory_status(0700, 1000), 1000);
  EXPECT_FALSE(verdict.refused);
  EXPECT_EQ(verdict.modes.file, 0600u);
  EXPECT_FALSE(check_directory(directory_status(0755, 1000), 1000).refused);
}

TEST(DirectoryRights, WritableForOthersIsRefusedWithAndWithoutSticky) {
  for (const mode_t mode : {0777, 01777, 0702, 02777}) {
    EXPECT_EQ(check_directory(directory_status(mode, 1000), 1000).refused, Errc::permission_denied);
  }
}

TEST(DirectoryRights, SomebodyElsesDirectoryIsRefused) {
  EXPECT_EQ(check_directory(directory_status(0755, 0), 1000).refused, Errc::permission_denied);
  EXPECT_EQ(check_directory(directory_status(0770, 1000), 1000).refused, Errc::permission_denied);
}

TEST(DirectoryRights, GroupDirectoryMayBelongToSomebodyElse) {
  const auto verdict = check_directory(directory_status(02770, 0), 1000);
  EXPECT_FALSE(verdict.refused);
  EXPECT_TRUE(verdict.modes.group);
  EXPECT_EQ(verdict.modes.file, 0660u);
  EXPECT_EQ(verdict.modes.directory, 02770u);
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
}  // namespace baton::internal
