// baton_test_child: a process that a test starts. It plays one role and writes one line for each
// event, with the time of the boot clock (NS). The kernel kills it when its parent ends.
//
//   hold URL NAME [LABEL]       acquires; "held NS TOKEN"; at a line or EOF on stdin: releases,
//                               "released NS TOKEN"
//   lose URL NAME               acquires; "held NS TOKEN"; when the lock is lost: "lost NS REASON"
//   wait URL NAME MS            one acquire with this timeout, released at once: "held NS TOKEN"
//                               and "released NS TOKEN", or "failed NS REASON"
//   loop URL NAME ROUNDS FILE   acquires and releases; adds 1 to the number in FILE each time, in
//                               separate read and write steps; the record of each hold
//                               (see history/holds.h) goes to FILE.holds before its release;
//                               "started" and "done"
//   leave URL NAME              lock(), then exit() without unlock
//   fork URL NAME quick|full|linger   forks while holding; see fork_role
//   sigwait URL NAME [CA]       connects and uses the lock with no signal blocked, then waits for
//                               SIGTERM: "open SIGNAL THREAD" for each thread of the library that
//                               would take a signal, "ready", and after the signal "term"
#include <baton/baton.h>

#include "support/boot_clock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

namespace {
bool in_fork = false;
}  // namespace

// The fork does not destroy some objects on purpose, so a leak check in it has no meaning.
extern "C" [[gnu::visibility("default")]] int __lsan_is_turned_off() { return in_fork ? 1 : 0; }

namespace {

using baton::Client;
using baton::Error;
using baton::test::boot_now;
using namespace std::chrono_literals;

// Writes each line with one write(), because parent and fork may write at the same time.
[[gnu::format(printf, 2, 3)]] void write_line(int fd, const char* format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  int n = std::vsnprintf(text, sizeof text - 1, format, args);
  va_end(args);
  text[n++] = '\n';
  if (::write(fd, text, static_cast<std::size_t>(n)) != n) ::_exit(3);
}
template <class... Args>
void say(const char* format, Args... args) {
  write_line(1, format, args...);
}
void say(const char* text) { write_line(1, "%s", text); }

long long ns() { return boot_now().count(); }
unsigned long long as_ull(std::uint64_t token) { return token; }

void wait_for_input() {
  char byte = 0;
  while (::read(0, &byte, 1) == 1 && byte != '\n') {
  }
}

Client connect(const char* url, const char* label) {
  baton::ClientOptions options;
  options.label = label;
  if (const char* session = std::getenv("BATON_TEST_SESSION_MS")) {
    options.session_timeout = std::chrono::milliseconds(std::atoi(session));
  }
  return Client::connect(url, options);
}

int hold_role(const char* url, const char* name, const char* label) {
  auto client = connect(url, label);
  auto lock = client.mutex(name).acquire({.timeout = 60s});
  say("held %lld %llu", ns(), as_ull(lock.token()));
  wait_for_input();
  const auto end = ns();
  lock.release();
  say("released %lld %llu", end, as_ull(lock.token()));
  return 0;
}

int lose_role(const char* url, const char* name) {
  auto client = connect(url, "loser");
  auto lock = client.mutex(name).acquire({.timeout = 60s});
  std::atomic<bool> lost{false};
  const std::stop_callback on_loss(lock.lost_token(), [&] {
    say("lost %lld %d", ns(), lock.lost_reason().value());
    lost = true;
    lost.notify_all();
  });
  say("held %lld %llu", ns(), as_ull(lock.token()));
  lost.wait(false);
  return lock.valid() ? 5 : 0;
}

int wait_role(const char* url, const char* name, long ms) {
  auto client = connect(url, "waiter");
  auto lock = client.mutex(name).acquire_result({.timeout = std::chrono::milliseconds(ms)});
  if (!lock) {
    say("failed %lld %s", ns(), lock.error().code().message().c_str());
    return 2;
  }
  say("held %lld %llu", ns(), as_ull(lock->token()));
  const auto end = ns();
  lock->release();
  say("released %lld %llu", end, as_ull(lock->token()));
  return 0;
}

// Reads and writes in two steps, with a pause in between, so that two processes at once lose an
// update.
void add_one(int fd) {
  long long value = 0;
  if (::pread(fd, &value, sizeof value, 0) < 0) ::_exit(4);
  std::this_thread::yield();
  ++value;
  if (::pwrite(fd, &value, sizeof value, 0) != sizeof value) ::_exit(4);
}

int loop_role(const char* url, const char* name, int rounds, const char* file) {
  auto client = connect(url, "loop");
  auto mutex = client.mutex(name);
  const int fd = ::open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const std::string record = std::string(file) + ".holds";
  const int holds = ::open(record.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  for (int i = 0; i < rounds; ++i) {
    const auto asked = ns();
    auto lock = mutex.acquire({.timeout = 60s});
    const auto begin = ns();
    add_one(fd);
    write_line(holds, "%d %d %lld 0 %lld %lld %llu -", ::getpid(), i, asked, begin, ns(),
               as_ull(lock.token()));
    if (i == 0) say("started %lld", begin);
  }
  client.close();
  say("done %lld", ns());
  return 0;
}

int leave_role(const char* url, const char* name) {
  static Client client = connect(url, "leaver");
  static auto mutex = client.mutex(name);
  mutex.lock();
  say("held %lld %llu", ns(), as_ull(mutex.token()));
  std::exit(0);
}

const char* code_of(const Error& error) {
  static char text[64];
  std::snprintf(text, sizeof text, "%d", static_cast<int>(error.errc()));
  return text;
}

template <class F>
const char* outcome(F f) {
  try {
    f();
    return "ok";
  } catch (const Error& error) {
    return code_of(error);
  }
}

// The fork writes "child KEY VALUE" lines. After the fork has ended the parent writes "parent KEY
// VALUE" lines. quick: the fork ends by _exit; full: it destroys everything, writes "child end" and
// ends by exit; linger: it writes only "child lingers" and runs until the input ends.
int fork_role(const char* url, const char* name, std::string_view how) {
  std::optional<Client> client(connect(url, "forker"));
  auto mutex = client->mutex(name);
  auto other = client->mutex(std::string(name) + ".std");
  std::optional<baton::Lock> lock(mutex.acquire({.timeout = 30s}));
  other.lock();
  say("held %lld %llu", ns(), as_ull(lock->token()));
  const pid_t pid = ::fork();
  if (pid == 0) {
    in_fork = true;
    ::alarm(30);
    if (how == "linger") {
      say("child lingers");
      wait_for_input();
      ::_exit(0);
    }
    say("child valid %d", lock->valid());
    say("child state %d", static_cast<int>(lock->state()));
    say("child reason %d", lock->lost_reason().value());
    say("child for %lld", static_cast<long long>(lock->valid_for().count()));
    say("child stdvalid %d", other.valid());
    say("child acquire %s", outcome([&] { (void)mutex.acquire({.timeout = 5s}); }));
    say("child try %s", outcome([&] { (void)mutex.try_acquire(); }));
    say("child lock %s", outcome([&] { other.lock(); }));
    say("child verify %s", outcome([&] { lock->verify(1s); }));
    say("child inspect %s", outcome([&] { (void)client->inspect(name); }));
    say("child list %s", outcome([&] { (void)client->list(); }));
    say("child mutex %s", outcome([&] { (void)client->mutex("x").try_lock(); }));
    const auto result = mutex.acquire_result({.timeout = 5s});
    say("child result %s", result ? "ok" : code_of(result.error()));
    say("child release %s", outcome([&] { lock->release(1s); }));
    if (how != "full") ::_exit(0);
    other.unlock();
    lock.reset();
    client->close();
    client.reset();
    say("child end");
    std::exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  say("parent status %d", status);
  say("parent valid %d", lock->valid());
  say("parent verify %s", outcome([&] { lock->verify(10s); }));
  say("parent stdvalid %d", other.valid());
  say("parent ready %lld", ns());
  wait_for_input();
  other.unlock();
  lock->release();
  say("parent released %lld", ns());
  return 0;
}

// Signals for which a program may want to wait.
constexpr int kProgramSignals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1, SIGUSR2,
                                   SIGALRM, SIGTERM, SIGCHLD, SIGWINCH};

// The main thread is the only thread of the program itself. The library has started all other
// threads.
void say_open_threads() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(::getpid())) continue;
    std::ifstream status(task.path() / "status");
    std::string name;
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("Name:")) name = line.substr(6);
      if (!line.starts_with("SigBlk:")) continue;
      const auto blocked = std::strtoull(line.c_str() + 7, nullptr, 16);
      for (const int number : kProgramSignals) {
        if ((blocked >> (number - 1) & 1) == 0) say("open %d %s", number, name.c_str());
      }
    }
  }
}

int sigwait_role(const char* url, const char* name, const char* ca) {
  baton::ClientOptions options;
  options.tls.ca_file = ca;
  auto client = Client::connect(url, options);
  auto mutex = client.mutex(name);
  // Many calls at once, because then thread pools grow.
  std::atomic<int> left{100};
  for (int n = left; n > 0; --n) {
    mutex.acquire_async({.timeout = 60s}, [&](baton::Result<baton::Lock>) {
      if (--left == 0) left.notify_all();
    });
  }
  for (int now = left; now > 0; now = left) left.wait(now);
  mutex.acquire({.timeout = 60s}).release();
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &term, nullptr);
  say_open_threads();
  say("ready");
  int got = 0;
  if (::sigwait(&term, &got) != 0 || got != SIGTERM) return 5;
  say("term");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::alarm(300);
  const std::string_view role = argc > 3 ? argv[1] : "";
  try {
    if (role == "hold") return hold_role(argv[2], argv[3], argc > 4 ? argv[4] : "child");
    if (role == "lose") return lose_role(argv[2], argv[3]);
    if (role == "wait" && argc > 4) return wait_role(argv[2], argv[3], std::atol(argv[4]));
    if (role == "loop" && argc > 5) {
      return loop_role(argv[2], argv[3], std::atoi(argv[4]), argv[5]);
    }
    if (role == "leave") return leave_role(argv[2], argv[3]);
    if (role == "fork" && argc > 4) {
      return fork_role(argv[2], argv[3], argv[4]);
    }
    if (role == "sigwait") return sigwait_role(argv[2], argv[3], argc > 4 ? argv[4] : "");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "baton_test_child %s: %s\n", argv[1], e.what());
    return 1;
  }
  std::fprintf(stderr,
               "usage: baton_test_child hold|lose|wait|loop|leave|fork|sigwait URL NAME ...\n");
  return 64;
}
