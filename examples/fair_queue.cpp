// Several processes queue for the same lock and get it in the order of their arrival.
//
//   fair_queue [--url URL] [--processes 6]

#include <baton/baton.h>

#include "example.h"

#include <cstdio>
#include <fstream>
#include <iostream>

using Clock = std::chrono::steady_clock;  // on Linux all processes read the same clock

// A contender: waits for the lock, prints that it has it, works for 20 ms, and ends.
int contend(const std::string& url, const std::string& number, const std::string& protocol,
            long long start) {
  baton::ClientOptions options;
  options.label = "contender " + number;
  auto client = baton::Client::connect(url, options);
  baton::Lock lock = client.mutex("examples/fair-queue").acquire();

  const auto now = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
  std::printf("  %7.1f ms  contender %s has it (token %llu)\n", double(now - start) / 1e6,
              number.c_str(), static_cast<unsigned long long>(lock.token()));
  std::fflush(stdout);
  // Only the holder of the lock writes this file.
  std::ofstream(protocol, std::ios::app) << number << ' ' << lock.token() << '\n';
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the work
  return 0;
}  // the lock goes to the next in line

int run(int argc, char** argv) {
  example::Scratch scratch;
  const std::string url = example::store_url(argc, argv, scratch);
  example::require_shared(url);
  const int processes = std::stoi(example::option(argc, argv, "--processes", "6"));
  const std::string protocol = scratch.path() + "/protocol";

  // Hold the lock while the contenders join the queue one by one, so that their order is known.
  auto client = baton::Client::connect(url);
  auto mutex = client.mutex("examples/fair-queue");
  baton::Lock lock = mutex.acquire();
  const auto start = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
  std::vector<pid_t> contenders;
  for (int i = 1; i <= processes; ++i) {
    contenders.push_back(
        example::spawn({"--role", "contender", "--url", url, "--number", std::to_string(i),
                        "--protocol", protocol, "--start", std::to_string(start)}));
    example::wait_until([&] { return client.inspect(mutex.name()).entries.size() == i + 1UL; });
  }
  std::cout << "The queue, as inspect() shows it:\n";
  const auto entries = client.inspect(mutex.name()).entries;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    std::cout << (i == 0 ? "  holds  " : "  waits  ") << entries[i].label << '\n';
  }
  std::cout << "The first holder releases the lock:" << std::endl;
  lock.release();

  bool all_well = true;
  for (const pid_t pid : contenders) all_well = example::succeeded(pid) && all_well;

  std::ifstream served(protocol);
  int expected = 1;
  std::uint64_t token = 0;
  std::uint64_t last = 0;
  for (int number = 0; served >> number >> token; ++expected, last = token) {
    all_well = all_well && number == expected && token > last;
  }
  all_well = all_well && expected == processes + 1;
  std::cout << (all_well ? "Served in the order of arrival.\n" : "NOT in the order of arrival!\n");
  return all_well ? 0 : 1;
}

int main(int argc, char** argv) try {
  const bool started_by_us = !example::option(argc, argv, "--role").empty();
  example::limit_seconds(60, started_by_us);
  if (started_by_us) {
    return contend(example::option(argc, argv, "--url"), example::option(argc, argv, "--number"),
                   example::option(argc, argv, "--protocol"),
                   std::stoll(example::option(argc, argv, "--start")));
  }
  return run(argc, argv);
} catch (const std::exception& error) {
  std::cerr << "fair_queue: " << error.what() << '\n';
  return 1;
}
