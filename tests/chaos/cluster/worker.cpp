// A client process of a chaos run: it connects, works, and closes when it receives SIGTERM. It may
// be killed or stopped at any time. The driver (driver.cpp) starts it.
#include "chaos/cluster/contender.h"
#include "chaos/process.h"
#include "support/boot_clock.h"
#include "support/child.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::boot_now;

WorkPlan plan_of(std::map<std::string, std::string>& said) {
  WorkPlan plan;
  plan.url = said["--url"];
  plan.client = static_cast<std::uint32_t>(std::stoul(said["--client"]));
  plan.locks = std::stoi(said["--locks"]);
  plan.threads = std::stoi(said["--threads"]);
  plan.seed = std::stoull(said["--seed"]);
  plan.directory = said["--directory"];
  plan.session = std::chrono::milliseconds(std::stoi(said["--session"]));
  plan.missing = missing_in(said["--control"]);
  return plan;
}

void count(const HistoryWriter& history, const char* when) {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  statm >> size >> resident;
  Record record;
  record.kind = Kind::counted;
  record.value = static_cast<std::uint64_t>(test::descriptors_of_this_process());
  record.token = static_cast<std::uint64_t>(test::threads_of_this_process());
  record.until = std::chrono::nanoseconds(resident * static_cast<std::uint64_t>(getpagesize()));
  record.text = when;
  record.at = boot_now();
  history.write(record);
}

void note(const HistoryWriter& history, Kind kind) {
  Record record;
  record.kind = kind;
  record.at = boot_now();
  history.write(record);
}

// Waits for SIGTERM, which all threads block.
bool told_to_stop(std::chrono::milliseconds limit) {
  sigset_t term;
  ::sigemptyset(&term);
  ::sigaddset(&term, SIGTERM);
  const timespec time{limit.count() / 1000, (limit.count() % 1000) * 1'000'000};
  return ::sigtimedwait(&term, nullptr, &time) == SIGTERM;
}

std::chrono::nanoseconds ask(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}
std::chrono::nanoseconds ask_kernel(clockid_t clock) {
  timespec t{};
  ::syscall(SYS_clock_gettime, clock, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

// Checks the clocks of this process. A fault may set its wall clock, and the process then reports
// the new offset. The boot clock, which the histories use, must be the kernel's.
class Clocks {
 public:
  void look() {
    const auto off = ask(CLOCK_BOOTTIME) - ask_kernel(CLOCK_BOOTTIME);
    if (off > 10min || off < -10min) throw std::runtime_error("the boot clock is not the kernel's");
    const auto ahead =
        std::chrono::round<std::chrono::minutes>(ask(CLOCK_REALTIME) - ask_kernel(CLOCK_REALTIME));
    if (ahead == std::exchange(ahead_, ahead)) return;
    std::printf("clock %lld\n", static_cast<long long>(ahead.count()));
    std::fflush(stdout);
  }

 private:
  std::chrono::minutes ahead_{0};
};

// Each line begins with the time on the clock of the histories.
std::function<void(LogLevel, std::string_view)> log_to(const std::string& path) {
  auto file = std::make_shared<std::ofstream>(path, std::ios::app);
  return [file](LogLevel level, std::string_view line) {
    if (level == LogLevel::debug) return;
    *file << boot_now().count() << ' ' << line << std::endl;
  };
}

std::unique_ptr<Client> connect(const WorkPlan& plan) {
  ClientOptions options;
  options.session_timeout = plan.session;
  options.connect_timeout = kConnectTime;
  options.label = "chaos" + std::to_string(plan.client);
  options.log = log_to(plan.directory + "/client" + std::to_string(plan.client) + ".log");
  for (;;) {
    auto client = Client::try_connect(plan.url, options);
    if (client) return std::make_unique<Client>(std::move(client).value());
    if (client.error().errc() != Errc::connection_failed &&
        client.error().errc() != Errc::timeout) {
      throw client.error();
    }
    if (told_to_stop(50ms)) return nullptr;
  }
}

void work(const WorkPlan& plan) {
  const HistoryWriter history(plan.directory + "/client" + std::to_string(plan.client) + ".history",
                              plan.client);
  const std::jthread clocks([](const std::stop_token& stop) {
    for (Clocks all; !stop.stop_requested(); std::this_thread::sleep_for(50ms)) all.look();
  });
  const auto client = connect(plan);
  if (client == nullptr) return note(history, Kind::stop);
  note(history, Kind::start);
  count(history, "connected");
  const int threads = test::threads_of_this_process();
  const int descriptors = test::descriptors_of_this_process();
  Workplace place{plan, *client, history, {}};
  for (int lock = 0; lock < plan.locks; ++lock) {
    place.registers.emplace_back(register_path(plan.directory, static_cast<std::uint32_t>(lock)),
                                 !plan.missing.check);
  }
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < plan.threads; ++i) {
      crew.emplace_back([&, i](const std::stop_token& stop) {
        Contender(place, plan.seed + static_cast<std::uint64_t>(i)).run(stop);
      });
    }
    auto counted = boot_now();
    while (!told_to_stop(50ms)) {
      if (boot_now() - counted < 1s) continue;
      counted = boot_now();
      count(history, "running");
    }
    for (auto& thread : crew) thread.request_stop();
  }
  // Resources of the last calls are freed within a moment. Wait for that, so that only leaks are
  // counted.
  const test::Stopwatch watch;
  while (watch.elapsed() < 3s && (test::threads_of_this_process() > threads ||
                                  test::descriptors_of_this_process() > descriptors)) {
    std::this_thread::sleep_for(10ms);
  }
  count(history, "idle");
  client->close();
  count(history, "closed");
  note(history, Kind::stop);
}

}  // namespace
}  // namespace baton::chaos

int main(int argc, char** argv) {
  std::map<std::string, std::string> said;
  for (int i = 1; i + 1 < argc; i += 2) said[argv[i]] = argv[i + 1];
  try {
    baton::chaos::end_with_parent(said["--parent"]);
    sigset_t term;
    ::sigemptyset(&term);
    ::sigaddset(&term, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &term, nullptr);
    baton::chaos::work(baton::chaos::plan_of(said));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "client %s: %s\n", said["--client"].c_str(), error.what());
    return 1;
  }
}
