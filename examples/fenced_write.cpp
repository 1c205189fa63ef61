// Shows why a resource must check the fencing token. A holder is paused after it has checked its
// lock and before it writes. It loses the lock during the pause, wakes up and writes. No lock can
// prevent this write; the resource refuses it by the token. Here the holder wakes up at the worst
// moment: its successor has read the document and has not written yet. If the token was checked
// only at the write, this late write would be accepted, and the successor would overwrite an update
// that it has never read. So each holder records its token before it reads.
//
//   fenced_write [--url URL]

#include <baton/baton.h>

#include "example.h"
#include "fenced_row.h"

#include <iostream>

baton::Client connect(const std::string& url, const char* label) {
  baton::ClientOptions options;
  options.label = label;
  options.log = [](auto, auto) {
  };  // the loss is expected here; by default it is a warning on stderr
  options.session_timeout = std::chrono::seconds(3);  // on a cluster: how long the pause may last
  return baton::Client::connect(url, options);
}

const char* verdict(bool accepted) { return accepted ? "accepted" : "refused"; }

// The unlucky holder: it is paused after it has the lock, as by a long page fault or a suspended
// VM.
int unlucky(const std::string& url, const std::string& file) {
  auto client = connect(url, "unlucky");
  baton::Lock lock = client.mutex("examples/fenced-write").acquire();
  example::FencedRow document(file);
  const bool recorded = document.record(lock.token());
  std::cout << "unlucky: has the lock, records token " << lock.token() << ": " << verdict(recorded)
            << std::endl;
  if (!recorded) return 1;
  const std::string text = document.read();
  std::cout << "unlucky: reads \"" << text << "\"" << std::endl;
  if (!lock.valid()) return 1;
  raise(SIGSTOP);  // paused after the check, before the write; no thread of this process runs
  const bool accepted = document.write(lock.token(), text + ", stale version");
  std::cout << "unlucky: wakes up and writes with token " << lock.token() << ": "
            << verdict(accepted) << std::endl;
  return accepted ? 1 : 0;
}

int run(int argc, char** argv) {
  example::Scratch scratch;
  const std::string url = example::store_url(argc, argv, scratch);
  example::require_shared(url);
  const std::string file = scratch.path() + "/document";
  example::FencedRow document(file);
  document.write(0, "first version");

  auto client = connect(url, "successor");
  const pid_t pid = example::spawn({"--role", "unlucky", "--url", url, "--file", file});
  int status = 0;
  if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status)) return 1;
  std::cout << "unlucky: is paused" << std::endl;

  auto mutex = client.mutex("examples/fenced-write");
  if (client.session().timeout == std::chrono::milliseconds::max()) {
    // This store has no lease: a stopped process is alive and keeps its lock until an operator
    // evicts it.
    const auto entries = client.inspect(mutex.name()).entries;
    if (entries.empty() || !client.evict(mutex.name(), entries.front().id)) return 1;
    std::cout << "operator: evicted " << entries.front().label << std::endl;
  } else {
    std::cout << "store: gets no heartbeat from unlucky, and ends its session" << std::endl;
  }

  baton::Lock lock = mutex.acquire_for(std::chrono::seconds(20));
  const bool recorded = document.record(lock.token());
  std::cout << "successor: has the lock, records token " << lock.token() << ": "
            << verdict(recorded) << std::endl;
  const std::string text = document.read();
  std::cout << "successor: reads \"" << text << "\"" << std::endl;

  kill(pid, SIGCONT);  // unlucky wakes up between the successor's read and write
  const bool stale_refused = example::succeeded(pid);

  const bool accepted = document.write(lock.token(), text + ", second version");
  std::cout << "successor: writes with token " << lock.token() << ": " << verdict(accepted)
            << std::endl;
  std::cout << "document: " << document.read() << '\n';
  return recorded && stale_refused && accepted ? 0 : 1;
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
