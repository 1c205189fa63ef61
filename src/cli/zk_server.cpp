#include "zk_server.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <memory>

#include "fd.h"

namespace baton::cli {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLimit{1'000};
constexpr std::size_t kLongest = 16'384;

std::string word_after(const std::string& text, const std::string& key) {
  const auto at = text.find(key);
  if (at == std::string::npos) return "";
  const auto begin = at + key.size();
  return text.substr(begin, text.find_first_of("\n\r ,-", begin) - begin);
}

bool wait(int fd, short events, steady_clock::time_point until) {
  const auto left = std::chrono::duration_cast<milliseconds>(until - steady_clock::now()).count();
  pollfd one{fd, events, 0};
  return left > 0 && poll(&one, 1, static_cast<int>(left)) > 0;
}

std::string converse(const std::string& host, const std::string& port) {
  const auto until = steady_clock::now() + kLimit;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return "";
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> address(found, freeaddrinfo);
  const Fd fd(socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return "";
  if (connect(fd.get(), address->ai_addr, address->ai_addrlen) != 0 && errno != EINPROGRESS) {
    return "";
  }
  if (!wait(fd.get(), POLLOUT, until) || send(fd.get(), "srvr", 4, MSG_NOSIGNAL) != 4) return "";
  std::string answer;
  std::array<char, 4096> buffer{};
  while (answer.size() < kLongest && wait(fd.get(), POLLIN, until)) {
    const auto n = recv(fd.get(), buffer.data(), buffer.size(), 0);
    if (n <= 0) break;
    answer.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return answer;
}

}  // namespace

ZkServerFacts parse_srvr(const std::string& text) {
  return {word_after(text, "Zookeeper version: "), word_after(text, "Mode: ")};
}

ZkServerFacts ask_zk_server(const std::string& endpoint) noexcept {
  try {
    const auto colon = endpoint.rfind(':');
    if (colon == std::string::npos) return {};
    std::string host = endpoint.substr(0, colon);
    if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
    return parse_srvr(converse(host, endpoint.substr(colon + 1)));
  } catch (...) {
    return {};
  }
}

}  // namespace baton::cli
