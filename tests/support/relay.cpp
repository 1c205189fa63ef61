#include "support/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace baton::test {
namespace {

constexpr std::size_t kMostHeld = 64U << 20;  // per direction; then the relay stops reading
constexpr std::chrono::milliseconds kRetry{5};

}  // namespace

void close_hard(int fd) {
  const linger now{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ::close(fd);
}

Relay::Relay(RelayState& state, int epoll, int fd, const Route& route)
    : state_(state),
      epoll_(epoll),
      target_(route.target),
      patience_ends_(RelayClock::now() + route.patience),
      fd_{fd, -1} {
  pipe_[0].direction = route.reversed ? Direction::kToClient : Direction::kToServer;
  pipe_[1].direction = reverse(pipe_[0].direction);
  pipe_[0].rewrite = route.rewrite;
  const auto calls = std::make_shared<Http2Calls>();
  pipe_[0].grpc_scanner.emplace(true, calls);
  pipe_[1].grpc_scanner.emplace(false, calls);
  watch(fd);
  connect_target();
}

// Edge-triggered, because a close that is held back must not wake the thread again and again.
void Relay::watch(int fd) const {
  const int yes = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  epoll_event e{};
  e.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  e.data.fd = fd;
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &e);
}

void Relay::connect_target() {
  retry_.reset();
  fd_[1] = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_[1] < 0) return refused();
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(target_);
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_[1], reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0 ||
      errno == EINPROGRESS) {
    return watch(fd_[1]);
  }
  refused();
}

// The target does not listen. Connects again until the patience ends. Then the connection ends with
// a reset, which passes through the faults of its direction.
void Relay::refused() {
  refused_ = false;
  close_side(1, false);
  if (RelayClock::now() < patience_ends_) {
    retry_ = RelayClock::now() + kRetry;
    return;
  }
  pipe_[0].receiver_gone = true;
  ended(pipe_[1], End::kReset);
}

void Relay::mark(std::size_t side, std::uint32_t events) {
  constexpr std::uint32_t kEnd = EPOLLHUP | EPOLLERR;
  if (side == 1 && !connected_) {
    refused_ = (events & kEnd) != 0;
    connected_ = !refused_ && (events & EPOLLOUT) != 0;
    if (!connected_) return;
  }
  if ((events & (EPOLLIN | EPOLLRDHUP | kEnd)) != 0) pipe_[side].readable = true;
  if ((events & (EPOLLOUT | kEnd)) != 0) pipe_[1 - side].writable = true;
}

bool Relay::pump() {
  if (refused_) refused();
  if (retry_ && *retry_ <= RelayClock::now()) connect_target();
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t k = 0; k < 2; ++k) {
      moved |= receive(k);
      moved |= forward(k);
    }
  }
  return !over();
}

bool Relay::receive(std::size_t k) {
  Pipe& p = pipe_[k];
  if (!p.readable || p.end != End::kNone || p.held >= kMostHeld) return false;
  std::array<char, 65536> buffer;
  const auto n = ::recv(fd_[k], buffer.data(), buffer.size(), 0);
  if (n < 0 && errno == EINTR) return true;
  if (n < 0 && errno == EAGAIN) {
    p.readable = false;
    return false;
  }
  if (n > 0) {
    take(k, std::string_view(buffer.data(), static_cast<std::size_t>(n)));
  } else {
    ended(p, n == 0 ? End::kFin : End::kReset);
  }
  return true;
}

void Relay::ended(Pipe& p, End end) {
  p.end = end;
  p.end_due = RelayClock::now() + fault(p).delay;
  if (dropping(p)) p.lost = true;
}

void Relay::take(std::size_t k, std::string_view data) {
  Pipe& p = pipe_[k];
  Fault& f = fault(p);
  state_.bytes[RelayState::index(p.direction)] += data.size();
  std::optional<std::size_t> cut;  // the bytes before this position are kept
  if (f.bytes_left) {
    if (data.size() >= *f.bytes_left) cut = *f.bytes_left;
    *f.bytes_left -= cut.value_or(data.size());
  }
  const auto in_zk = cut_in_zk(p, data);
  const auto in_grpc = cut_in_grpc(p, data);
  if (!cut) cut = in_zk ? in_zk : in_grpc;
  put(p, std::string(data.substr(0, cut.value_or(data.size()))));
  if (!cut) return;
  f.disarm();
  sever(k);
}

std::optional<std::size_t> Relay::cut_in_zk(Pipe& p, std::string_view data) {
  Fault& f = fault(p);
  std::optional<std::size_t> cut;
  std::size_t at = 0;
  while (const std::size_t used = p.scanner.next(data.substr(at))) {
    at += used;
    ++state_.frames[RelayState::index(p.direction)];
    const ZkFrame& frame = p.scanner.frame();
    if (f.frames_left == 0 || (f.filter && !f.filter(frame)) || --f.frames_left > 0) continue;
    cut = f.deliver ? at : at - std::min(at, frame.size + 4);
  }
  return cut;
}

std::optional<std::size_t> Relay::cut_in_grpc(Pipe& p, std::string_view data) {
  Fault& f = fault(p);
  std::optional<std::size_t> cut;
  std::size_t at = 0;
  while (const std::size_t used = p.grpc_scanner->next(data.substr(at))) {
    at += used;
    const Http2Frame& frame = p.grpc_scanner->frame();
    if (grpc_messages(frame)) ++state_.grpc_messages[RelayState::index(p.direction)];
    if (f.grpc_left == 0 || (f.grpc_filter && !f.grpc_filter(frame)) || --f.grpc_left > 0) continue;
    cut = f.deliver ? at : at - std::min(at, p.grpc_scanner->frame_bytes());
  }
  return cut;
}

void Relay::put(Pipe& p, std::string data) {
  if (dropping(p)) {
    p.lost = true;
    return;
  }
  if (p.receiver_gone) return;
  if (p.rewrite) {
    p.start += data;
    auto rewritten = p.rewrite(p.start);
    if (!rewritten) return;
    p.rewrite = nullptr;
    data = std::move(*rewritten);
  }
  p.held += data.size();
  if (!data.empty()) p.queue.push_back({std::move(data), 0, RelayClock::now() + fault(p).delay});
}

// Cuts off the sender. The receiver still gets the bytes that are kept, then an end. Its side stays
// open until it closes, because an answer that is not read would cause a reset, which could
// overtake the request.
void Relay::sever(std::size_t k) {
  severed_ = true;
  ended(pipe_[k], End::kFin);
  pipe_[1 - k].receiver_gone = true;
  close_side(k, false);
}

bool Relay::forward(std::size_t k) {
  Pipe& p = pipe_[k];
  const Fault& f = fault(p);
  if (f.stalled || dropping(p)) return false;
  if (p.receiver_gone) {
    p.queue.clear();
    p.held = 0;
    return false;
  }
  const bool moved = flush(p, fd_[1 - k]);
  if (p.end == End::kNone || p.end_told || !p.queue.empty() || !f.due(p.end_due)) return moved;
  if (k == 0 && !connected_) return moved;
  p.end_told = true;
  if (p.end == End::kFin) {
    ::shutdown(fd_[1 - k], SHUT_WR);
  } else {
    close(true);
  }
  return true;
}

bool Relay::flush(Pipe& p, int to) {
  bool moved = false;
  const Fault& f = fault(p);
  while (p.writable && !p.queue.empty() && piece_due(p) <= RelayClock::now()) {
    Chunk& chunk = p.queue.front();
    auto size = chunk.bytes.size() - chunk.sent;
    if (f.drip != 0) size = std::min(size, f.drip);
    const auto n = ::send(to, chunk.bytes.data() + chunk.sent, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      p.writable = false;
      return moved;
    }
    moved = true;
    if (n < 0) {  // the receiver has closed; receive() will read that
      p.receiver_gone = true;
      return moved;
    }
    chunk.sent += static_cast<std::size_t>(n);
    p.held -= static_cast<std::size_t>(n);
    if (chunk.sent == chunk.bytes.size()) p.queue.pop_front();
    if (f.drip == 0) continue;
    p.drip_due = RelayClock::now() + f.drip_every;
    if (p.held != 0) ++state_.drips[RelayState::index(p.direction)];
  }
  return moved;
}

RelayClock::time_point Relay::piece_due(const Pipe& p) const {
  const Fault& f = fault(p);
  RelayClock::time_point due;
  if (f.delay.count() != 0) due = p.queue.front().due;
  if (f.drip != 0) due = std::max(due, p.drip_due);
  return due;
}

// Whether both peers have closed and the bytes that are left cannot be delivered.
bool Relay::over() const {
  return std::all_of(pipe_.begin(), pipe_.end(), [this](const Pipe& p) {
    const bool held = fault(p).stalled || dropping(p);
    return p.end != End::kNone && (p.end_told || p.receiver_gone || held);
  });
}

std::optional<RelayClock::time_point> Relay::next_due() const {
  std::optional<RelayClock::time_point> first = retry_;
  for (const auto& p : pipe_) {
    const Fault& f = fault(p);
    if (f.stalled || dropping(p) || !f.paced() || p.receiver_gone) continue;
    std::optional<RelayClock::time_point> due;
    if (!p.queue.empty()) {
      if (p.writable) due = piece_due(p);
    } else if (f.delay.count() != 0 && p.end != End::kNone && !p.end_told) {
      due = p.end_due;
    }
    if (due && (!first || *due < *first)) first = due;
  }
  return first;
}

void Relay::drop(Direction direction) {
  for (auto& p : pipe_) {
    if (p.direction != direction) continue;
    const bool end_held = p.end != End::kNone && !p.end_told;
    if (!p.queue.empty() || !p.start.empty() || end_held) p.lost = true;
    p.queue.clear();
    p.held = 0;
  }
}

void Relay::close(bool hard) {
  retry_.reset();
  for (std::size_t k = 0; k < 2; ++k) {
    close_side(k, hard);
    pipe_[k].receiver_gone = true;
    if (pipe_[k].end == End::kNone) pipe_[k].end = End::kReset;
  }
}

void Relay::close_side(std::size_t k, bool hard) {
  if (fd_[k] < 0) return;
  if (hard) {
    close_hard(fd_[k]);
  } else {
    ::close(fd_[k]);
  }
  fd_[k] = -1;
}

}  // namespace baton::test
