// fork() must not wait for the disk of a file store. The functions at the end of this file replace
// those of the C library in this program, so that a test can block one step on the disk.
#include <baton/baton.h>

#include "support/sanitized.h"
#include "support/temp_dir.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <future>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace baton {
namespace {

using namespace std::chrono_literals;

// Stops the thread that reaches the chosen step, until let_go() is called.
class SlowDisk {
 public:
  void arm(std::string_view step) {
    const std::lock_guard guard(mutex_);
    step_ = step;
    process_ = ::getpid();
    stopped_ = false;
  }
  void let_go() {
    const std::lock_guard guard(mutex_);
    step_ = {};
    changed_.notify_all();
  }
  bool wait_stopped() {
    std::unique_lock guard(mutex_);
    return changed_.wait_for(guard, 20s, [this] { return stopped_; });
  }
  void at(std::string_view step) {
    std::unique_lock guard(mutex_);
    if (step != step_ || process_ != ::getpid()) return;
    stopped_ = true;
    changed_.notify_all();
    changed_.wait_for(guard, 30s, [&] { return step != step_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string_view step_;
  pid_t process_ = 0;  // only this process stops: a child also closes its copies of the files
  bool stopped_ = false;
};

SlowDisk& disk() {
  static auto* const instance = new SlowDisk;  // NOLINT: files are closed during exit
  return *instance;
}

[[maybe_unused]] bool is_liveness_file(int fd) {
  char path[512];
  char link[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = ::readlink(link, path, sizeof path);
  return size > 0 && std::string_view(path, static_cast<std::size_t>(size)).find("/clients/c.") !=
                         std::string_view::npos;
}

class FileForks : public ::testing::TestWithParam<const char*> {};

TEST_P(FileForks, DoNotWaitForTheDisk) {
  if (test::kThreadSanitizer) GTEST_SKIP() << "a thread sanitizer cannot follow a fork";
  const test::TempDir directory;
  const std::string url = "file://" + directory.path() + "/locks";
  auto first = Client::connect(url);  // makes the directories
  disk().arm(GetParam());
  auto slow = std::async(std::launch::async, [&] {
    auto client = Client::connect(url);
    client.close();
  });
  ASSERT_TRUE(disk().wait_stopped());
  auto forked = std::async(std::launch::async, [] {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(0);
    int status = 0;
    return ::waitpid(pid, &status, 0) == pid;
  });
  EXPECT_EQ(forked.wait_for(5s), std::future_status::ready) << "fork() waits for the disk";
  disk().let_go();
  EXPECT_TRUE(forked.get());
  slow.get();
}

INSTANTIATE_TEST_SUITE_P(, FileForks,
                         ::testing::Values("create", "chmod", "mkfifo", "rename", "close",
                                           "unlink"),
                         [](const auto& step) { return std::string(step.param); });

}  // namespace
}  // namespace baton

#if !defined(__SANITIZE_THREAD__)
// NOLINTBEGIN: the names and types are those of the C library
extern "C" {
int openat(int directory, const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
    baton::disk().at("create");
  }
  return static_cast<int>(::syscall(SYS_openat, directory, path, flags, mode));
}
int fchmod(int fd, mode_t mode) noexcept {
  baton::disk().at("chmod");
  return static_cast<int>(::syscall(SYS_fchmod, fd, mode));
}
int mkfifoat(int directory, const char* path, mode_t mode) noexcept {
  baton::disk().at("mkfifo");
  return static_cast<int>(::syscall(SYS_mknodat, directory, path, mode | S_IFIFO, 0));
}
int renameat(int from, const char* old_path, int to, const char* new_path) noexcept {
  baton::disk().at("rename");
  return static_cast<int>(::syscall(SYS_renameat2, from, old_path, to, new_path, 0));
}
int unlinkat(int directory, const char* path, int flags) noexcept {
  baton::disk().at("unlink");
  return static_cast<int>(::syscall(SYS_unlinkat, directory, path, flags));
}
int close(int fd) {
  if (baton::is_liveness_file(fd)) baton::disk().at("close");
  return static_cast<int>(::syscall(SYS_close, fd));
}
}
// NOLINTEND
#endif
