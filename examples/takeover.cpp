// Kills the holder, and measures how long it takes until the next waiter has the lock.
//
//   takeover [--url URL] [--rounds 5]
//
// On file:// the kernel reports the death at once. On a cluster it takes the session timeout: until
// then the store cannot know whether the holder is dead or slow.

#include <baton/baton.h>

#include "example.h"

#include <cstdio>
#include <future>
#include <iostream>

baton::Client connect(const std::string& url) {
  baton::ClientOptions options;
  options.session_timeout = std::chrono::seconds(3);
  return baton::Client::connect(url, options);
}

// Takes the lock and never releases it.
int hold(const std::string& url) {
  auto client = connect(url);
  baton::Lock lock = client.mutex("examples/takeover").acquire();
  while (true) pause();
}

int run(int argc, char** argv) {
  example::Scratch scratch;
  const std::string url = example::store_url(argc, argv, scratch);
  example::require_shared(url);
  const int rounds = std::stoi(example::option(argc, argv, "--rounds", "5"));

  auto client = connect(url);
  auto mutex = client.mutex("examples/takeover");
  const auto in_line = [&] { return client.inspect(mutex.name()).entries.size(); };
  const auto timeout =
      client.session().timeout;  // as granted: a server may change the requested timeout
  if (timeout != std::chrono::milliseconds::max()) {
    std::printf("session timeout: %.1f s\n", std::chrono::duration<double>(timeout).count());
  }
  for (int round = 1; round <= rounds; ++round) {
    const pid_t holder = example::spawn({"--role", "holder", "--url", url});
    example::wait_until([&] { return in_line() == 1; });

    // Queue behind the holder. No thread waits: the handler is called when the lock is granted.
    std::promise<baton::Result<baton::Lock>> promise;
    auto future = promise.get_future();
    mutex.acquire_async({.timeout = std::chrono::seconds(20)},
                        [promise = std::move(promise)](baton::Result<baton::Lock> r) mutable {
                          promise.set_value(std::move(r));
                        });
    example::wait_until([&] { return in_line() == 2; });

    const auto killed = std::chrono::steady_clock::now();
    kill(holder, SIGKILL);
    baton::Lock lock = future.get().value();
    const std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - killed;
    std::printf("kill -9 of the holder -> next in line has the lock: %.1f ms\n", took.count());
    std::fflush(stdout);
    waitpid(holder, nullptr, 0);
    lock.release();  // confirmed by the store: the next round counts the entries of the queue
  }
  return 0;
}

int main(int argc, char** argv) try {
  const bool started_by_us = !example::option(argc, argv, "--role").empty();
  example::limit_seconds(60, started_by_us);
  if (started_by_us) {
    return hold(example::option(argc, argv, "--url"));
  }
  return run(argc, argv);
} catch (const std::exception& error) {
  std::cerr << "takeover: " << error.what() << '\n';
  return 1;
}
