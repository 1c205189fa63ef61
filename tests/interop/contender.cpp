#include "interop/contender.h"

#include "support/boot_clock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <iterator>
#include <sstream>
#include <system_error>
#include <thread>

extern char** environ;

namespace baton::interop {
namespace {

int decode(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

std::vector<std::string> command_of(Library library, const std::string& who, const Place& place) {
  const std::string session = std::to_string(place.session.count());
  const std::string path = place.root + "/" + place.name;
  switch (library) {
    case Library::baton: {
      std::vector<std::string> words{BATON_CONTENDER, who, "zk://" + place.hosts + place.root,
                                     place.name, session};
      if (place.persistent_parents) words.emplace_back("--persistent-parents");
      return words;
    }
    case Library::curator:
      // Small and quick to start: several run at once.
      return {BATON_INTEROP_JAVA,
              "-Xmx64m",
              "-XX:+UseSerialGC",
              "-XX:TieredStopAtLevel=1",
              "-cp",
              BATON_INTEROP_CLASSPATH,
              "CuratorContender",
              who,
              place.hosts,
              path,
              session};
    case Library::kazoo:
      return {BATON_INTEROP_PYTHON, BATON_INTEROP_KAZOO, who, place.hosts, path, session};
  }
  return {};
}

}  // namespace

std::string_view name_of(Library library) {
  switch (library) {
    case Library::baton:
      return "Baton";
    case Library::curator:
      return "Curator";
    case Library::kazoo:
      return "Kazoo";
  }
  return "?";
}

std::string_view missing_peers() { return BATON_INTEROP_MISSING; }

std::int64_t monotonic_now() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

Contender::Contender(Library library, const std::string& who, const Place& place) : who_(who) {
  ::signal(SIGPIPE, SIG_IGN);
  int to[2];
  int from[2];
  if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) fail(errno, "pipe2");
  auto words = command_of(library, who, place);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, to[0], 0);
  ::posix_spawn_file_actions_adddup2(&actions, from[1], 1);
  const int failed = ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(to[0]);
  ::close(from[1]);
  in_ = to[1];
  out_ = from[0];
  if (failed != 0) {
    ::close(in_);
    ::close(out_);
    fail(failed, "posix_spawn " + words[0]);
  }
}

Contender::~Contender() {
  kill_hard();
  ::close(in_);
  ::close(out_);
}

void Contender::say(const std::string& command) {
  const std::string full = command + "\n";
  [[maybe_unused]] const auto n = ::write(in_, full.data(), full.size());
}

std::optional<std::string> Contender::line(std::chrono::milliseconds limit) {
  const test::Stopwatch watch;
  for (;;) {
    if (const auto end = buffer_.find('\n'); end != buffer_.npos) {
      std::string found = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return found;
    }
    const auto left = limit - watch.elapsed();
    if (left.count() <= 0) return std::nullopt;
    pollfd p{out_, POLLIN, 0};
    if (::poll(&p, 1, static_cast<int>(left.count())) <= 0) continue;
    char bytes[4096];
    const auto n = ::read(out_, bytes, sizeof bytes);
    if (n <= 0) return std::nullopt;
    buffer_.append(bytes, static_cast<std::size_t>(n));
  }
}

std::vector<std::string> Contender::answer(std::chrono::milliseconds limit) {
  words_.clear();
  if (const auto text = line(limit)) {
    std::istringstream in(*text);
    words_.assign(std::istream_iterator<std::string>(in), {});
  }
  return words_;
}

std::string Contender::ask(const std::string& command) {
  say(command);
  const auto words = answer();
  return words.empty() ? "nothing" : words[0];
}

std::int64_t Contender::stamp() const {
  return words_.size() < 2 ? 0 : std::strtoll(words_[1].c_str(), nullptr, 10);
}

std::uint64_t Contender::token() const {
  return words_.size() < 3 ? 0 : std::strtoull(words_[2].c_str(), nullptr, 10);
}

bool Contender::silent() {
  pollfd p{out_, POLLIN, 0};
  return buffer_.empty() && ::poll(&p, 1, 0) == 0;
}

void Contender::kill_hard() {
  if (status_) return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  status_ = decode(status);
}

std::optional<int> Contender::quit(std::chrono::milliseconds limit) {
  say("quit");
  for (const test::Stopwatch watch; !status_ && watch.elapsed() < limit;) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = decode(status);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return status_;
}

}  // namespace baton::interop
