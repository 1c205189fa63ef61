#include "chaos/cluster/crew.h"

#include "support/boot_clock.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

namespace baton::chaos {

using namespace std::chrono_literals;
using test::boot_now;

namespace {

constexpr std::chrono::milliseconds kClockSeen = 10s;
constexpr std::chrono::milliseconds kEnd = 20s;  // close() takes at most five seconds

// Writes eight bytes in one step, because clients have mapped the file.
void write_clock(const std::string& path, std::chrono::seconds ahead) {
  const std::int64_t seconds = ahead.count();
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const bool written = ::pwrite(fd, &seconds, sizeof seconds, 0) == sizeof seconds;
  ::close(fd);
  if (!written) throw std::runtime_error("cannot write " + path);
}

}  // namespace

Crew::Crew(CrewPlan plan, const Cluster& cluster, const HistoryWriter& history)
    : plan_(std::move(plan)), history_(history) {
  const auto ports = cluster.ports();
  for (int i = 0; i < plan_.clients; ++i) {
    Seat seat;
    seat.proxy = std::make_unique<test::Proxy>();
    std::vector<std::uint16_t> routes;
    for (std::size_t n = 0; n < ports.size(); ++n) {  // not all clients use the same server first
      const auto server = (static_cast<std::size_t>(i) + n) % ports.size();
      routes.push_back(seat.proxy->add_route(ports[server]));
    }
    seat.url = cluster.url(routes);
    if (i % 4 == 1 && !plan_.clock_library.empty()) {
      seat.clock_file = plan_.directory + "/clock" + std::to_string(i);
    }
    start(seat);
    seats_.push_back(std::move(seat));
  }
}

void Crew::start(Seat& seat) {
  seat.number = ++last_;
  std::vector<std::string> words;
  if (!seat.clock_file.empty()) {
    write_clock(seat.clock_file, 0s);
    words = {"LD_PRELOAD=" + plan_.clock_library, "BATON_CHAOS_CLOCK=" + seat.clock_file};
  }
  words.insert(words.end(),
               {plan_.worker, "--url", seat.url, "--client", std::to_string(seat.number), "--locks",
                std::to_string(plan_.locks), "--threads", std::to_string(plan_.threads), "--seed",
                std::to_string(plan_.seed * 1'000'003 + seat.number * 101), "--directory",
                plan_.directory, "--session", std::to_string(kSession.count()), "--control",
                plan_.control, "--parent", std::to_string(::getpid())});
  seat.child = std::make_unique<test::Child>("/usr/bin/env", words);
}

Seat* Crew::find(std::uint32_t number) {
  for (auto& seat : seats_) {
    if (seat.number == number) return &seat;
  }
  return nullptr;
}

void Crew::write(Kind kind, const Seat& seat) const {
  Record record;
  record.kind = kind;
  record.value = seat.number;
  record.at = boot_now();
  history_.write(record);
}

void Crew::kill(Seat& seat) {
  seat.child->kill_hard();
  write(Kind::killed, seat);
  start(seat);
}

void Crew::pause(Seat& seat) {
  if (!seat.child->stop()) throw std::runtime_error("a client does not stop");
  write(Kind::paused, seat);
}

void Crew::resume(Seat& seat) {
  write(Kind::resumed, seat);
  seat.child->signal(SIGCONT);
}

void Crew::set_clock(Seat& seat, std::chrono::seconds ahead) {
  write_clock(seat.clock_file, ahead);
  const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(ahead).count();
  if (!seat.child->line_with("clock " + std::to_string(minutes), kClockSeen)) {
    throw std::runtime_error("client " + std::to_string(seat.number) +
                             " does not see that its clock was set");
  }
}

void Crew::heal() {
  for (auto& seat : seats_) seat.proxy->heal();
}

std::vector<std::string> Crew::accidents() {
  std::vector<std::string> all;
  for (auto& seat : seats_) {
    const auto code = seat.child->exit_code(1ms);
    if (!code) continue;
    all.push_back("client " + std::to_string(seat.number) +
                  " ended by itself: " + std::to_string(*code));
    write(Kind::killed, seat);
    start(seat);
  }
  return all;
}

std::vector<std::string> Crew::finish() {
  auto all = accidents();
  for (auto& seat : seats_) seat.child->signal(SIGTERM);
  for (auto& seat : seats_) {
    const auto code = seat.child->exit_code(kEnd);
    if (code && *code == 0) continue;
    all.push_back("client " + std::to_string(seat.number) +
                  (code ? " failed: " + std::to_string(*code) : " does not end"));
    seat.child->kill_hard();
  }
  return all;
}

}  // namespace baton::chaos
