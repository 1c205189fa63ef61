#include "support/ports.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <stdexcept>
#include <string>
#include <utility>

namespace baton::test {
namespace {

constexpr std::uint16_t kFirst = 20'000;
constexpr std::uint16_t kCount = 12'000;

// One file for all processes, with any TMPDIR. A lock on its n-th byte is the lease of port n. The
// file is never removed, and a process's locks end with the process.
int open_book() {
  const std::string path = "/tmp/baton-ports-" + std::to_string(::getuid());
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) throw std::runtime_error("open " + path);
  return fd;
}

bool lock_byte(int fd, std::uint16_t port) {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = port;
  range.l_len = 1;
  return ::fcntl(fd, F_OFD_SETLK, &range) == 0;  // OFD locks also exclude two leases of one process
}

bool free_now(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;  // as the servers do, so that TIME_WAIT does not matter
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  const bool bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0;
  ::close(fd);
  return bound;
}

}  // namespace

PortLease::PortLease() : fd_(open_book()) {
  std::random_device random;
  const auto start = static_cast<std::uint16_t>(random() % kCount);
  for (std::uint16_t i = 0; i < kCount; ++i) {
    const auto port = static_cast<std::uint16_t>(kFirst + (start + i) % kCount);
    if (!lock_byte(fd_, port)) continue;
    if (free_now(port)) {
      port_ = port;
      return;
    }
    // Another program uses this port. The lock on its byte does no harm. Closing fd_ releases the
    // lock.
  }
  ::close(fd_);
  throw std::runtime_error("no free port from " + std::to_string(kFirst) + " on");
}

PortLease::~PortLease() {
  if (fd_ >= 0) ::close(fd_);
}

PortLease::PortLease(PortLease&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), port_(other.port_) {}

}  // namespace baton::test
