// The one danger that no lock can remove: a holder is paused between "the lock is mine" and its
// write, loses the lock meanwhile, wakes up and writes. The fencing token stops it, at the
// resource. Here it wakes up at the worst moment: its successor has read the document and has not
// written yet. A token that is checked at the write alone would let it through, and the successor
// would overwrite an update that it has never seen. So each holder records its token before it
// reads.
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

// The unlucky one: stops after it has the lock, as a long page fault or a suspended VM would do it.
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
  raise(SIGSTOP);  // paused after the check, before the write; nothing of this process runs now
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
    // No lease on this store: a stopped process is alive and keeps its lock. An operator decides.
    const auto entries = client.inspect(mutex.name()).entries;
    if (entries.empty() || !client.evict(mutex.name(), entries.front().id)) return 1;
    std::cout << "operator: evicted " << entries.front().label << std::endl;
  } else {
    std::cout << "store: hears nothing from unlucky, and ends its session" << std::endl;
  }

  baton::Lock lock = mutex.acquire_for(std::chrono::seconds(20));
  const bool recorded = document.record(lock.token());
  std::cout << "successor: has the lock, records token " << lock.token() << ": "
            << verdict(recorded) << std::endl;
  const std::string text = document.read();
  std::cout << "successor: reads \"" << text << "\"" << std::endl;

  kill(pid, SIGCONT);  // unlucky wakes up between our read and our write
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
