#include "fd.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <vector>

#include "errors.h"

namespace baton::cli {

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Fd::reset() noexcept {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw os_failure("cannot make a pipe", errno);
  return {Fd(ends[0]), Fd(ends[1])};
}

Bell::Bell() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!fd_) throw os_failure("cannot make an event descriptor", errno);
}

void Bell::ring() const noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(fd_.get(), &one, sizeof one);
}

void Bell::hush() const noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = read(fd_.get(), &count, sizeof count);
}

void close_all_but(std::initializer_list<int> keep) {
  std::vector<int> sorted(keep);
  std::sort(sorted.begin(), sorted.end());
  unsigned first = 3;
  for (const int fd : sorted) {
    if (fd < static_cast<int>(first)) continue;
    if (static_cast<unsigned>(fd) > first) close_range(first, static_cast<unsigned>(fd) - 1, 0);
    first = static_cast<unsigned>(fd) + 1;
  }
  close_range(first, UINT_MAX, 0);
}

void redirect_to_null(int fd) noexcept {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return;
  dup2(null, fd);
  if (null != fd) close(null);
}

}  // namespace baton::cli
