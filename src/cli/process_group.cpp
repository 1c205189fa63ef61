#include "process_group.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "fd.h"

namespace baton::cli {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestPause{20};

// Reads state and group of a process from /proc. False: the process is gone, or hidden from us.
bool read_stat(const char* pid, char& state, long& group, long& threads) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
  const Fd file(open(path, O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t n = file ? read(file.get(), text, sizeof text - 1) : -1;
  if (n <= 0) return false;
  text[n] = '\0';
  // The name in parentheses may contain any characters, so parse from the last ')' on.
  const char* rest = std::strrchr(text, ')');
  long parent = 0;
  return rest != nullptr &&
         std::sscanf(rest + 1,
                     " %c %ld %ld %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld",
                     &state, &parent, &group, &threads) == 4;
}

}  // namespace

Living has_living_member(pid_t group) noexcept {
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  if (proc == nullptr) return Living::unknown;
  bool saw_any = false;
  while (const dirent* entry = readdir(proc.get())) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    char state = 0;
    long its_group = 0;
    long threads = 0;
    if (!read_stat(entry->d_name, state, its_group, threads)) continue;
    saw_any = true;
    // The main thread of a process may be a zombie while other threads of it continue.
    const bool dead = state == 'X' || (state == 'Z' && threads <= 1);
    if (its_group == group && !dead) return Living::yes;
  }
  return saw_any ? Living::no : Living::unknown;
}

GroupEnder::GroupEnder(pid_t group, BootClock::time_point kill_at)
    : group_(group), kill_at_(kill_at) {
  kill(-group_, SIGTERM);
  kill(-group_, SIGCONT);
}

void GroupEnder::kill_by(BootClock::time_point kill_at) noexcept {
  kill_at_ = std::min(kill_at_, kill_at);
}

bool GroupEnder::step() noexcept {
  if (!reaped_ && BootClock::now() >= kill_at_) {
    kill(-group_, SIGKILL);
    killed_ = true;
  }
  if (is_gone()) return true;
  pause_ = std::min(pause_ * 2, kLongestPause);
  return false;
}

BootClock::time_point GroupEnder::next_step() const noexcept {
  const auto next = BootClock::now() + pause_;
  return killed_ ? next : std::min(next, std::max(kill_at_, BootClock::now()));
}

bool GroupEnder::is_gone() noexcept {
  const Living living = has_living_member(group_);
  if (living == Living::yes) return false;
  const bool was_reaped = reaped_;
  if (living == Living::no || killed_) {
    // A process that started while we read /proc may be missing there. A signal to the group
    // reaches it, too.
    if (!reaped_) kill(-group_, SIGKILL);
    pid_t pid = 0;
    while ((pid = waitpid(-1, nullptr, WNOHANG)) > 0) reaped_ = reaped_ || pid == group_;
    if (pid < 0 && errno == ECHILD) reaped_ = true;
  }
  if (kill(-group_, 0) != 0) return errno == ESRCH;  // EPERM: a hidden process of another user
  return was_reaped && living == Living::no;         // only zombies of other parents are left
}

void GroupEnder::finish() noexcept {
  while (!step()) poll(nullptr, 0, poll_timeout(next_step(), kLongestPause));
}

}  // namespace baton::cli
