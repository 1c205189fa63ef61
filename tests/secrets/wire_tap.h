// WireTap: a TCP relay on the loopback that records all bytes from servers to clients. These bytes
// contain the secrets that servers make.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace baton::test {

class WireTap {
 public:
  explicit WireTap(std::uint16_t server) : server_(server), listener_(::socket(AF_INET, kKind, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, any, size) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, any, &size) != 0) {
      throw std::runtime_error("wire tap: cannot listen");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~WireTap() {
    stop_ = true;
    thread_.join();
    ::close(listener_);
  }
  WireTap(const WireTap&) = delete;
  WireTap& operator=(const WireTap&) = delete;

  std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
  void cut() { cut_ = true; }  // closes all connections soon; new ones are served
  // All bytes that servers have sent, connection after connection.
  std::string said() const {
    const std::lock_guard guard(mutex_);
    std::string all;
    for (const auto& [number, text] : said_) all += text;
    return all;
  }

 private:
  static constexpr int kKind = SOCK_STREAM | SOCK_CLOEXEC;
  struct Line {
    int client;
    int server;
    int number;
  };
  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  void accept_one(std::vector<Line>& lines) {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    const int server = ::socket(AF_INET, kKind, 0);
    const sockaddr_in address = loopback(server_);
    if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      ::close(client);
      ::close(server);
      return;
    }
    lines.push_back({client, server, next_++});
  }

  // False: one side has closed the connection.
  bool forward(int from, int to, int number) {
    std::array<char, 16384> buffer;
    const auto n = ::recv(from, buffer.data(), buffer.size(), 0);
    if (n <= 0) return false;
    if (number >= 0) {
      const std::lock_guard guard(mutex_);
      said_[number].append(buffer.data(), static_cast<std::size_t>(n));
    }
    return ::send(to, buffer.data(), static_cast<std::size_t>(n), MSG_NOSIGNAL) == n;
  }

  void run() {
    std::vector<Line> lines;
    const auto end = [](const Line& line) {
      ::close(line.client);
      ::close(line.server);
    };
    while (!stop_) {
      std::vector<pollfd> watched{{listener_, POLLIN, 0}};
      for (const auto& line : lines) {
        watched.push_back({line.client, POLLIN, 0});
        watched.push_back({line.server, POLLIN, 0});
      }
      ::poll(watched.data(), watched.size(), 20);
      std::vector<Line> left;
      const bool cut = cut_.exchange(false);
      for (std::size_t i = 0; i < lines.size(); ++i) {
        bool open = !cut;
        if (open && watched[2 * i + 1].revents != 0) {
          open = forward(lines[i].client, lines[i].server, -1);
        }
        if (open && watched[2 * i + 2].revents != 0) {
          open = forward(lines[i].server, lines[i].client, lines[i].number);
        }
        if (open) {
          left.push_back(lines[i]);
        } else {
          end(lines[i]);
        }
      }
      lines = left;
      if (watched[0].revents != 0) accept_one(lines);
    }
    for (const auto& line : lines) end(line);
  }

  const std::uint16_t server_;
  const int listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<bool> cut_{false};
  int next_ = 0;
  mutable std::mutex mutex_;
  std::map<int, std::string> said_;
  std::thread thread_;
};

}  // namespace baton::test
