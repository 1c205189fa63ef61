#include "zk/socket.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

namespace baton::zk {

std::string peer_text(const sockaddr_storage& peer) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (peer.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return std::string(text.data()) + ":" + std::to_string(ntohs(v4.sin_port));
  }
  if (peer.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer);
    inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    return "[" + std::string(text.data()) + "]:" + std::to_string(ntohs(v6.sin6_port));
  }
  return "unknown";
}

namespace {

bool same_peer(const sockaddr_storage& a, const sockaddr_storage& b) noexcept {
  if (a.ss_family != b.ss_family) return false;
  if (a.ss_family == AF_INET) {
    const auto& x = reinterpret_cast<const sockaddr_in&>(a);
    const auto& y = reinterpret_cast<const sockaddr_in&>(b);
    return x.sin_port == y.sin_port && x.sin_addr.s_addr == y.sin_addr.s_addr;
  }
  if (a.ss_family == AF_INET6) {
    const auto& x = reinterpret_cast<const sockaddr_in6&>(a);
    const auto& y = reinterpret_cast<const sockaddr_in6&>(b);
    return x.sin6_port == y.sin6_port &&
           std::memcmp(&x.sin6_addr, &y.sin6_addr, sizeof x.sin6_addr) == 0;
  }
  return false;
}

// The descriptors belong to other code, and may be closed while they are examined; the kernel then
// returns an error. Direct system calls are used because sanitizers report the access as a race.
bool is_kind(int fd, std::string_view kind) {
  std::array<char, 32> target{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const auto n = readlink(link.c_str(), target.data(), target.size());
  return n > 0 && std::string_view(target.data(), static_cast<std::size_t>(n)).starts_with(kind);
}

template <class F>
void for_each_fd(F&& f) {
  const std::unique_ptr<DIR, int (*)(DIR*)> fds(opendir("/proc/self/fd"), closedir);
  if (!fds) return;
  while (const dirent* entry = readdir(fds.get())) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    const int fd = std::atoi(entry->d_name);
    if (fd != dirfd(fds.get())) f(fd);
  }
}

}  // namespace

void mark_close_on_exec(const sockaddr_storage& peer) noexcept {
  for_each_fd([&](int fd) {
    if (!is_kind(fd, "socket:")) return;
    sockaddr_storage other{};
    socklen_t length = sizeof other;
    if (syscall(SYS_getpeername, fd, &other, &length) != 0) return;
    if (same_peer(peer, other)) syscall(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
  });
}

NewPipes::NewPipes() {
  for_each_fd([this](int fd) { before_.insert(fd); });
}

void NewPipes::mark() const {
  for_each_fd([this](int fd) {
    if (before_.contains(fd) || !is_kind(fd, "pipe:")) return;
    const bool blocking = (syscall(SYS_fcntl, fd, F_GETFL) & O_NONBLOCK) == 0;
    if (!blocking && syscall(SYS_fcntl, fd, F_GETFD) == 0) {
      syscall(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
    }
  });
}

}  // namespace baton::zk
