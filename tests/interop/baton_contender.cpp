// The contender that uses baton. It reads commands from stdin; contender.h describes them.
//
//   baton_contender WHO URL NAME SESSION_MS [--persistent-parents]
#include <baton/baton.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <mutex>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using std::chrono::milliseconds;

constexpr int kDigits = 20;  // width of the counter, so that a write never changes its length

// The clock of Java's System.nanoTime(), so that the histories of all contenders can be compared.
long long now() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

void say(const std::string& what, const std::string& more = {}) {
  std::cout << what << ' ' << now() << (more.empty() ? "" : " ") << more << std::endl;
}

int open_file(const std::string& name, int flags) {
  const int fd = ::open(name.c_str(), flags | O_CLOEXEC);
  if (fd < 0) throw std::runtime_error("cannot open " + name);
  return fd;
}

class Contender {
 public:
  Contender(std::string who, const char* url, std::string name, const baton::ClientOptions& options)
      : who_(std::move(who)),
        name_(std::move(name)),
        client_(baton::Client::connect(url, options)),
        mutex_(client_.mutex(name_)) {}

  void obey(const std::string& command) {
    std::istringstream words(command);
    std::string word;
    words >> word;
    if (word == "turns") {
      int count = 0;
      std::string counter, history, no_lock;
      words >> count >> counter >> history >> no_lock;
      turns(count, counter, history, no_lock.empty());
    } else if (word == "try") {
      lock_ = mutex_.try_acquire();
      answer();
    } else if (word == "acquire") {
      long ms = 0;
      words >> ms;
      acquire_for(milliseconds(ms));
    } else if (word == "wait") {
      lock_.emplace(mutex_.acquire());
      answer();
    } else if (word == "release") {
      lock_.value().release();
      lock_.reset();
      say("RELEASED");
    } else if (word == "stand") {
      int count = 0;
      words >> count;
      stand(count);
    } else if (word == "entries") {
      entries();
    } else {
      throw std::invalid_argument("unknown command: " + command);
    }
  }

 private:
  void turns(int count, const std::string& counter_file, const std::string& history_file,
             bool lock) {
    const int counter = open_file(counter_file, O_RDWR);
    const int history = open_file(history_file, O_WRONLY | O_APPEND);
    for (int turn = 1; turn <= count; ++turn) {
      const auto call = now();
      std::optional<baton::Lock> hold;
      if (lock) hold.emplace(mutex_.acquire());
      const auto granted = now();
      add_one(counter);
      std::ostringstream line;
      line << who_ << ' ' << turn << ' ' << call << " 0 " << granted << ' ' << now() << ' '
           << (hold ? hold->token() : 0) << " -\n";
      write_all(history, line.str());
      if (hold && !hold->valid()) throw std::runtime_error("a hold was lost during its turn");
      if (hold) hold->release();
    }
    ::close(counter);
    ::close(history);
    say("DONE");
  }

  // Reads and writes in two steps, with a pause between them: with two holders an update is lost.
  void add_one(int fd) {
    char text[kDigits + 1] = {};
    if (::pread(fd, text, kDigits, 0) != kDigits) throw std::runtime_error("cannot read counter");
    const long long value = std::strtoll(text, nullptr, 10) + 1;
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 1000));
    std::snprintf(text, sizeof text, "%0*lld", kDigits, value);
    if (::pwrite(fd, text, kDigits, 0) != kDigits) throw std::runtime_error("cannot write counter");
  }

  // Writes a line in one call, so that lines of several processes do not mix.
  static void write_all(int fd, const std::string& line) {
    if (::write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      throw std::runtime_error("cannot write history");
    }
  }

  void acquire_for(milliseconds limit) {
    try {
      lock_.emplace(mutex_.acquire_for(limit));
    } catch (const baton::Error& error) {
      if (error.errc() != baton::Errc::timeout) throw;
      lock_.reset();
    }
    answer();
  }

  // Joins the queue this many times and does not wait. A lock that is granted is kept until the
  // end.
  void stand(int count) {
    for (int i = 0; i < count; ++i) {
      mutex_.acquire_async({}, [this](baton::Result<baton::Lock> granted) {
        const std::lock_guard guard(standing_mutex_);
        if (granted) standing_.push_back(std::move(granted).value());
      });
    }
    say("STANDING");
  }

  void answer() const {
    say(lock_ ? "GRANTED" : "REFUSED", lock_ ? std::to_string(lock_->token()) + " -" : "");
  }

  void entries() {
    std::string all;
    for (const auto& entry : client_.inspect(name_).entries) {
      all += (all.empty() ? "" : " ") + entry.id + ":" + std::to_string(entry.token);
    }
    say("ENTRIES", all);
  }

  const std::string who_;
  const std::string name_;
  std::minstd_rand random_{static_cast<unsigned>(::getpid())};
  std::mutex standing_mutex_;
  std::vector<baton::Lock> standing_;
  baton::Client client_;  // declared after the members that its handlers use
  baton::DistributedMutex mutex_;
  std::optional<baton::Lock> lock_;
};

}  // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc < 5) {
    std::fprintf(stderr, "usage: baton_contender WHO URL NAME SESSION_MS [--persistent-parents]\n");
    return 64;
  }
  try {
    baton::ClientOptions options;
    options.label = argv[1];
    options.session_timeout = milliseconds(std::atol(argv[4]));
    if (argc > 5 && std::strcmp(argv[5], "--persistent-parents") == 0) {
      options.zookeeper.persistent_parents = true;
    }
    Contender contender(argv[1], argv[2], argv[3], options);
    say("READY");
    for (std::string line; std::getline(std::cin, line);) {
      if (line == "quit") return 0;
      contender.obey(line);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "baton_contender %s: %s\n", argv[1], e.what());
    return 1;
  }
  return 3;  // the parent process has ended
}
