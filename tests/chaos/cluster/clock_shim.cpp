// A library for LD_PRELOAD: it moves the wall clock of one process by the number of seconds in the
// file that BATON_CHAOS_CLOCK names; a change of the file takes effect at once. All other clocks
// and all timers are the kernel's. (libfaketime also moves timers on CLOCK_BOOTTIME, which a real
// change of the wall clock does not.)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace {

using Seconds = std::atomic<std::int64_t>;

const Seconds* ahead() {
  static const Seconds* const shared = [] {
    const char* const path = std::getenv("BATON_CHAOS_CLOCK");
    const int fd = path == nullptr ? -1 : ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) ::abort();
    void* const memory = ::mmap(nullptr, sizeof(Seconds), PROT_READ, MAP_SHARED, fd, 0);
    ::close(fd);
    if (memory == MAP_FAILED) ::abort();
    return static_cast<const Seconds*>(memory);
  }();
  return shared;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto code = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    time->tv_sec += ahead()->load();
  }
  return code;
}

int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  const int code = clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1'000};
  return code;
}

time_t time(time_t* result) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
#pragma GCC visibility pop
