#include "zk/zk_socket.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace baton::internal {

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
    sockaddr_storage other{};
    socklen_t length = sizeof other;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&other), &length) != 0) return;
    if (same_peer(peer, other)) fcntl(fd, F_SETFD, FD_CLOEXEC);
  });
}

NewPipes::NewPipes() {
  for_each_fd([this](int fd) { before_.insert(fd); });
}

void NewPipes::mark() const {
  for_each_fd([this](int fd) {
    struct stat about {};
    if (before_.contains(fd) || fstat(fd, &about) != 0 || !S_ISFIFO(about.st_mode)) return;
    const bool blocking = (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
    if (!blocking && fcntl(fd, F_GETFD) == 0) fcntl(fd, F_SETFD, FD_CLOEXEC);
  });
}

}  // namespace baton::internal
