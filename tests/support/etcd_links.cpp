#include "support/etcd_links.h"

#include "support/sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

namespace baton::test {
namespace {

int listen_anywhere(std::uint16_t& port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* address = reinterpret_cast<sockaddr*>(&a);
  socklen_t size = sizeof a;
  if (fd < 0 || ::bind(fd, address, size) != 0 || ::listen(fd, 1024) != 0 ||
      ::getsockname(fd, address, &size) != 0) {
    throw std::runtime_error("links: no port to listen on");
  }
  port = ntohs(a.sin_port);
  return fd;
}

}  // namespace

EtcdLinks::EtcdLinks(std::vector<std::uint16_t> servers)
    : ServerLinks(static_cast<int>(servers.size())),
      servers_(std::move(servers)),
      doors_(servers_.size()),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  for (auto& door : doors_) door.fd = listen_anywhere(door.port);
}

EtcdLinks::~EtcdLinks() {
  if (thread_.joinable()) {
    ::eventfd_write(wake_, 1);
    thread_.join();
  }
  for (const auto& door : doors_) ::close(door.fd);
  ::close(wake_);
}

void EtcdLinks::open(std::function<pid_t(int)> process_of) {
  process_of_ = std::move(process_of);
  sigset_t all;  // the new thread must not take signals of the test
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void EtcdLinks::run() const {
  std::vector<pollfd> events{{wake_, POLLIN, 0}};
  for (const auto& door : doors_) events.push_back({door.fd, POLLIN, 0});
  while (events[0].revents == 0) {
    ::poll(events.data(), events.size(), -1);
    for (std::size_t i = 1; i < events.size(); ++i) {
      if (events[i].revents != 0) let_in(static_cast<int>(i) - 1);
    }
  }
}

void EtcdLinks::let_in(int to) const {
  sockaddr_in a{};
  socklen_t size = sizeof a;
  const Door& door = doors_[static_cast<std::size_t>(to)];
  const int fd =
      ::accept4(door.fd, reinterpret_cast<sockaddr*>(&a), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return;
  const auto from = caller(ntohs(a.sin_port), door.port);
  if (!from) {
    ::close(fd);
  } else if (*from == to) {
    // A server may connect to itself. No fault acts on that connection.
    self_.adopt(fd, servers_[static_cast<std::size_t>(to)], false);
  } else {
    between(*from, to).adopt(fd, servers_[static_cast<std::size_t>(to)], reversed(*from, to));
  }
}

std::optional<int> EtcdLinks::caller(std::uint16_t its_port, std::uint16_t our_port) const {
  const std::uint64_t inode = inode_of(its_port, our_port);
  for (int i = 0; inode != 0 && i < static_cast<int>(servers_.size()); ++i) {
    if (const pid_t pid = process_of_(i); pid > 0 && sockets_of(pid).contains(inode)) return i;
  }
  return std::nullopt;
}

}  // namespace baton::test
