// The one danger that no lock can remove: a holder is paused between "the lock is mine" and its
// write, loses the lock meanwhile, wakes up and writes. The fencing token stops it, at the
// resource.
//
//   fenced_write [--url URL]

#include <baton/baton.h>

#include "example.h"

#include <sys/file.h>

#include <fstream>
#include <iostream>

// What the lock protects: a document that remembers the greatest token it has seen and refuses
// smaller ones. In a database this is one condition: UPDATE ... WHERE token <= :mine.
class Document {
 public:
  explicit Document(std::string file) : file_(std::move(file)) {}

  bool write(std::uint64_t token, const std::string& text) {
    // Compare and write are one step for the resource, as in a transaction.
    const int guard = open((file_ + ".guard").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (guard < 0 || flock(guard, LOCK_EX) != 0) throw std::runtime_error("cannot open document");
    const bool accepted = token >= greatest_token();
    if (accepted) std::ofstream(file_) << token << ' ' << text << '\n';
    close(guard);
    return accepted;
  }

  std::string read() const {
    std::string line;
    std::ifstream in(file_);
    std::getline(in, line);
    return line;
  }

 private:
  std::uint64_t greatest_token() const {
    std::uint64_t token = 0;
    std::ifstream(file_) >> token;
    return token;
  }
  std::string file_;
};

baton::Client connect(const std::string& url, const char* label) {
  baton::ClientOptions options;
  options.label = label;
  options.log = [](auto, auto) {
  };  // the loss is expected here; by default it is a warning on stderr
  options.session_timeout = std::chrono::seconds(3);  // on a cluster: how long the pause may last
  return baton::Client::connect(url, options);
}

// The unlucky one: stops after it has the lock, as a long page fault or a suspended VM would do it.
int unlucky(const std::string& url, const std::string& file) {
  auto client = connect(url, "unlucky");
  baton::Lock lock = client.mutex("examples/fenced-write").acquire();
  Document document(file);
  std::cout << "unlucky: has the lock, token " << lock.token() << "; writes: "
            << (document.write(lock.token(), "first version") ? "accepted" : "refused")
            << std::endl;
  if (!lock.valid()) return 1;
  raise(SIGSTOP);  // paused after the check, before the write; nothing of this process runs now
  const bool accepted = document.write(lock.token(), "stale version");
  std::cout << "unlucky: wakes up and writes with token " << lock.token() << ": "
            << (accepted ? "ACCEPTED" : "refused") << std::endl;
  return accepted ? 1 : 0;
}

int run(int argc, char** argv) {
  example::Scratch scratch;
  const std::string url = example::store_url(argc, argv, scratch);
  example::require_shared(url);
  const std::string file = scratch.path() + "/document";

  auto client = connect(url, "successor");
  const pid_t pid = example::spawn({"--role", "unlucky", "--url", url, "--file", file});
  int status = 0;
  if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status)) return 1;
  std::cout << "unlucky: is paused" << std::endl;

  auto mutex = client.mutex("examples/fenced-write");
  if (client.session().timeout == std::chrono::milliseconds::max()) {
    // No lease on this store: a stopped process is alive and keeps its lock. An operator decides.
    const auto entries = client.inspect(mutex.name()).entries;
    if (entries.empty() || !client.evict(mutex.name(), entries.front().id)) return 1;
    std::cout << "operator: evicted " << entries.front().label << std::endl;
  } else {
    std::cout << "store: hears nothing from unlucky, and ends its session" << std::endl;
  }

  baton::Lock lock = mutex.acquire_for(std::chrono::seconds(20));
  Document document(file);
  const bool accepted = document.write(lock.token(), "second version");
  std::cout << "successor: has the lock, token " << lock.token()
            << "; writes: " << (accepted ? "accepted" : "refused") << std::endl;

  kill(pid, SIGCONT);
  const bool refused = example::succeeded(pid);
  std::cout << "document: " << document.read() << '\n';
  return accepted && refused ? 0 : 1;
}

int main(int argc, char** argv) try {
  const bool started_by_us = !example::option(argc, argv, "--role").empty();
  example::limit_seconds(60, started_by_us);
  if (started_by_us) {
    return unlucky(example::option(argc, argv, "--url"), example::option(argc, argv, "--file"));
  }
  return run(argc, argv);
} catch (const std::exception& error) {
  std::cerr << "fenced_write: " << error.what() << '\n';
  return 1;
}
