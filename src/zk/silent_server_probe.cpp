#include "zk/silent_server_probe.h"

#include "common/base/mutex.h"
#include "common/base/signal_shield.h"
#include "common/base/unique_fd.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace baton::zk {

namespace {

// A connection to one address of a server. While `fd` is open, the server has sent nothing.
struct Knock {
  std::size_t server;
  UniqueFd fd;
  bool asked = false;
};

// Every server answers this command, at least with a refusal, and then closes the connection.
constexpr char kQuestion[] = {'s', 'r', 'v', 'r'};

// Adds a server to `loud` if the result is known at once (unknown name, connection refused).
std::vector<Knock> knock(const std::vector<Endpoint>& servers, std::set<std::size_t>& loud) {
  std::vector<Knock> knocks;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    const std::string port = std::to_string(servers[i].port);
    if (getaddrinfo(servers[i].host.c_str(), port.c_str(), &hints, &list) != 0) {
      loud.insert(i);
      continue;
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(list, freeaddrinfo);
    for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
      UniqueFd fd(socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const bool open =
          fd && (connect(fd.get(), a->ai_addr, a->ai_addrlen) == 0 || errno == EINPROGRESS);
      if (open) {
        knocks.push_back({i, std::move(fd)});
      } else {
        loud.insert(i);
      }
    }
  }
  return knocks;
}

enum class Heard { nothing, refusal, answer };

Heard hear(Knock& knock, short events) {
  if ((events & POLLOUT) != 0 && !knock.asked) {
    knock.asked = true;
    const auto n = send(knock.fd.get(), kQuestion, sizeof kQuestion, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) return Heard::refusal;
  }
  if ((events & (POLLIN | POLLHUP | POLLERR)) == 0) return Heard::nothing;
  char byte = 0;
  return recv(knock.fd.get(), &byte, 1, 0) == 1 ? Heard::answer : Heard::refusal;
}

}  // namespace

ProbeResult find_silent_servers(const std::vector<Endpoint>& servers,
                                std::chrono::milliseconds limit) {
  using Steady = std::chrono::steady_clock;
  ProbeResult found;
  std::set<std::size_t> loud;
  std::vector<Knock> knocks = knock(servers, loud);
  const auto until = Steady::now() + limit;
  while (loud.size() < servers.size()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Steady::now());
    if (left.count() <= 0) break;
    std::vector<pollfd> polled;
    polled.reserve(knocks.size());
    for (const Knock& k : knocks) {
      const short events = k.asked ? POLLIN : POLLIN | POLLOUT;
      polled.push_back({k.fd ? k.fd.get() : -1, events, 0});
    }
    const int n = poll(polled.data(), polled.size(), static_cast<int>(left.count()));
    if (n < 0 && errno != EINTR) break;
    for (std::size_t i = 0; n > 0 && i < knocks.size(); ++i) {
      if (!knocks[i].fd) continue;
      const Heard heard = hear(knocks[i], polled[i].revents);
      if (heard == Heard::nothing) continue;
      loud.insert(knocks[i].server);
      if (heard == Heard::answer) found.answered.insert(knocks[i].server);
      knocks[i].fd.reset();
    }
  }
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (!loud.contains(i)) found.silent.insert(i);
  }
  return found;
}

struct SilentServerProbe::Shared {
  Mutex mutex;
  Loop* loop BATON_GUARDED_BY(mutex) = nullptr;  // null: the probe was destroyed
  Found found;                                   // on the strand
};

SilentServerProbe::SilentServerProbe(Loop& loop, std::vector<Endpoint> servers,
                                     std::chrono::milliseconds limit, Found found)
    : shared_(std::make_shared<Shared>()) {
  shared_->loop = &loop;
  shared_->found = std::move(found);
  const SignalShield shield;
  try {
    std::thread([shared = shared_, servers = std::move(servers), limit] {
      auto silence = find_silent_servers(servers, limit);
      const MutexLock guard(shared->mutex);
      if (shared->loop == nullptr) return;
      shared->loop->post([shared, silence = std::move(silence)] {
        if (shared->found) std::exchange(shared->found, nullptr)(silence);
      });
    }).detach();
  } catch (const std::system_error&) {
    // No thread could be started. The C client leaves the silent server by itself, only later.
  }
}

SilentServerProbe::~SilentServerProbe() {
  shared_->found = nullptr;
  const MutexLock guard(shared_->mutex);
  shared_->loop = nullptr;
}

}  // namespace baton::zk
