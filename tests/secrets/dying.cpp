// A program that has secrets and dies in the way that HOW names. It prints all log lines to stderr,
// and the C++ library adds the what() of an exception that is not caught.
//   baton_secrets_dying HOW URL [USER PASSWORD_FILE] [CA CERT KEY]
#include <baton/baton.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace std::chrono_literals;

// Removes the signal handlers of sanitizers: the signal itself must end the process.
[[noreturn]] void die_of(int signal) {
  std::signal(signal, SIG_DFL);
  std::raise(signal);
  std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  const std::string_view how = argv[1];
  baton::ClientOptions options;
  options.connect_timeout = 10s;
  options.zookeeper.plaintext_auth = true;
  options.log = [](baton::LogLevel, std::string_view line) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
  };
  if (argc == 5) {
    options.credentials.user = argv[3];
    options.credentials.password_file = argv[4];
  } else if (argc == 6) {
    options.tls.ca_file = argv[3];
    options.tls.cert_file = argv[4];
    options.tls.key_file = argv[5];
  }
  // With HOW "refused" the store refuses one of these calls, and the exception is not caught. Each
  // other HOW has its own lock, because the lock of a dead process stays held until its session
  // ends.
  auto client = baton::Client::connect(argv[2], options);
  auto mutex = client.mutex(how == "refused" ? "job" : "dying-" + std::string(how));
  auto lock = mutex.acquire({.timeout = 20s});
  std::fprintf(stderr, "holds %llu, and dies: %s\n", static_cast<unsigned long long>(lock.token()),
               argv[1]);
  if (how == "uncaught") (void)mutex.acquire({.timeout = 100ms});
  if (how == "noexcept") [&]() noexcept { (void)mutex.acquire({.timeout = 100ms}); }();
  if (how == "unwinding") {
    struct Worse {
      baton::DistributedMutex& mutex;
      ~Worse() noexcept(false) { (void)mutex.acquire({.timeout = 100ms}); }
    };
    const Worse worse{mutex};
    (void)mutex.acquire({.timeout = 100ms});
  }
  if (how == "segv") die_of(SIGSEGV);
  die_of(SIGABRT);
}
