#include "support/dial.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace baton::test {

Dial::Dial(const std::string& server, std::chrono::milliseconds limit) : limit_(limit) {
  const auto colon = server.rfind(':');
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (colon == server.npos || ::getaddrinfo(server.substr(0, colon).c_str(),
                                            server.substr(colon + 1).c_str(), &hints, &found)) {
    return;
  }
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  alive_ = ::connect(fd_, found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS;
  ::freeaddrinfo(found);
}

Dial::~Dial() {
  if (fd_ >= 0) ::close(fd_);
}

bool Dial::send(std::string_view bytes) {
  while (!bytes.empty() && wait(POLLOUT)) {
    const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) break;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return bytes.empty();
}

std::optional<std::string> Dial::some() {
  while (wait(POLLIN)) {
    std::array<char, 16384> buffer;
    const auto n = ::recv(fd_, buffer.data(), buffer.size(), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n < 0) break;
    return std::string(buffer.data(), static_cast<std::size_t>(n));
  }
  return std::nullopt;
}

bool Dial::wait(short events) const {
  const auto left = limit_ - watch_.elapsed();
  if (!alive_ || left.count() <= 0) return false;
  pollfd p{fd_, events, 0};
  return ::poll(&p, 1, static_cast<int>(left.count())) > 0;
}

}  // namespace baton::test
