#include "support/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

namespace baton::test {
namespace {

// "0100007F:1F90"
std::uint16_t port_in(const std::string& address) {
  return static_cast<std::uint16_t>(
      std::strtoul(address.c_str() + address.find(':') + 1, nullptr, 16));
}

struct Request {
  nlmsghdr head;
  inet_diag_req_v2 body;
};

struct Answer {
  nlmsghdr head;
  inet_diag_msg body;
  std::array<char, 4096> rest;
};

// nullopt: the kernel does not answer such requests.
std::optional<std::uint64_t> ask_kernel(std::uint16_t local, std::uint16_t remote) {
  Request request{};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.head.nlmsg_flags = NLM_F_REQUEST;
  request.body.sdiag_family = AF_INET;
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = ~0U;
  request.body.id.idiag_sport = htons(local);
  request.body.id.idiag_dport = htons(remote);
  request.body.id.idiag_src[0] = htonl(INADDR_LOOPBACK);
  request.body.id.idiag_dst[0] = htonl(INADDR_LOOPBACK);
  request.body.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  request.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  Answer answer{};
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (fd < 0) return std::nullopt;
  const bool asked = ::send(fd, &request, sizeof request, 0) == sizeof request &&
                     ::recv(fd, &answer, sizeof answer, 0) >= static_cast<ssize_t>(NLMSG_HDRLEN);
  ::close(fd);
  if (!asked) return std::nullopt;
  if (answer.head.nlmsg_type == SOCK_DIAG_BY_FAMILY) return answer.body.idiag_inode;
  nlmsgerr error{};
  std::memcpy(&error, &answer.body, sizeof error.error);
  if (answer.head.nlmsg_type == NLMSG_ERROR && error.error == -ENOENT) return 0;
  return std::nullopt;
}

}  // namespace

std::uint64_t inode_of(std::uint16_t local, std::uint16_t remote) {
  if (const auto found = ask_kernel(local, remote)) return *found;
  for (const auto& end : tcp_ends()) {
    if (end.local == local && end.remote == remote) return end.inode;
  }
  return 0;
}

std::vector<TcpEnd> tcp_ends() {
  std::vector<TcpEnd> all;
  std::ifstream in("/proc/net/tcp");
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retransmits, uid, timeout;
    TcpEnd end;
    words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >>
        timeout >> end.inode;
    end.local = port_in(local);
    end.remote = port_in(remote);
    end.established = state == "01";
    all.push_back(end);
  }
  return all;
}

std::set<std::uint64_t> sockets_of(pid_t process) {
  std::set<std::uint64_t> inodes;
  std::error_code gone;
  std::filesystem::directory_iterator each("/proc/" + std::to_string(process) + "/fd", gone);
  for (; !gone && each != std::filesystem::directory_iterator(); each.increment(gone)) {
    std::error_code closed;
    const std::string target = std::filesystem::read_symlink(*each, closed);
    if (target.starts_with("socket:[")) inodes.insert(std::strtoull(&target[8], nullptr, 10));
  }
  return inodes;
}

int connections_of_others(const std::set<std::uint16_t>& ports) {
  // The two lists are not read at the same moment. So only a connection that is found three times
  // counts.
  std::optional<std::set<std::uint64_t>> others;
  for (int look = 0; look < 3; ++look) {
    const auto ours = sockets_of(::getpid());
    std::set<std::uint64_t> now;
    for (const auto& end : tcp_ends()) {
      if (!end.established || !ports.contains(end.remote) || ours.contains(end.inode)) continue;
      if (!others || others->contains(end.inode)) now.insert(end.inode);
    }
    others = now;
  }
  return static_cast<int>(others->size());
}

}  // namespace baton::test
