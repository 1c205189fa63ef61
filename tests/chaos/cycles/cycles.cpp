// baton_cycles: a hundred thousand acquires that are granted, cancelled, timed out and refused must
// leave nothing behind: no memory, no descriptor, no thread, and no entry in the store.
//
//   baton_cycles [--url memory:] [--cycles 100000] [--threads 4] [--no-memory]
//                [--leak memory|entry|descriptor] [--expect memory|entries|descriptors]
//
// --no-memory: do not judge memory, because another tool (valgrind) does. --leak: leave something
// behind on purpose, as a control. --expect: exit 0 if exactly that was found, otherwise 1.
// Exit codes: 0 nothing is left, 1 something is left or an acquire ended wrongly, 64 wrong usage.
#include "chaos/cycles/round.h"
#include "support/boot_clock.h"
#include "support/child.h"
#include "support/eventually.h"

#include <baton/baton.h>

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <future>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::kLong;

// Memory may grow by so many bytes a cycle, after the first fifth of the run. An object that every
// cycle leaks is larger.
constexpr double kMostSlope = 2.0;
// In a short run memory may grow by so many bytes in total, because it grows in whole pages.
constexpr double kCoarse = 64.0 * 1024;
// The thread pools of gRPC grow with the number of processors, not with the number of requests.
constexpr int kPools = 4;
constexpr int kMarks = 20;

struct Options {
  std::string url = "memory:cycles";
  int cycles = 100'000;
  int threads = 4;
  bool memory = true;
  Leak leak = Leak::none;
  std::string expect;
};

struct Mark {
  int cycle = 0;
  long heap = 0;      // bytes in use
  long resident = 0;  // bytes, without pages of files
  long all = 0;       // bytes, with pages of files
  int descriptors = 0;
  int threads = 0;
};

Mark measure(int cycle) {
  long pages = 0;
  long resident = 0;
  long shared = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident >> shared;
  const long page = ::sysconf(_SC_PAGESIZE);
  const auto info = ::mallinfo2();
  return {cycle,
          static_cast<long>(info.uordblks + info.hblkhd),
          (resident - shared) * page,
          resident * page,
          test::descriptors_of_this_process(),
          test::threads_of_this_process()};
}

void print(const Mark& m) {
  std::printf("%8d cycles: heap %6ld KiB, resident %6ld of %6ld KiB, %d descriptors, %d threads\n",
              m.cycle, m.heap / 1024, m.resident / 1024, m.all / 1024, m.descriptors, m.threads);
  std::fflush(stdout);
}

// Growth in bytes a cycle, by least squares.
double slope(const std::vector<Mark>& marks, long Mark::*what) {
  double x = 0;
  double y = 0;
  for (const Mark& m : marks) {
    x += m.cycle;
    y += static_cast<double>(m.*what);
  }
  const auto n = static_cast<double>(marks.size());
  double xy = 0;
  double xx = 0;
  for (const Mark& m : marks) {
    xy += (m.cycle - x / n) * (static_cast<double>(m.*what) - y / n);
    xx += (m.cycle - x / n) * (m.cycle - x / n);
  }
  return xx > 0 ? xy / xx : 0;
}

ClientOptions client_options() {
  ClientOptions options;
  options.session_timeout = 20s;  // under valgrind everything is slow
  options.connect_timeout = kLong;
  return options;
}

class Run {
 public:
  explicit Run(Options options) : options_(std::move(options)) {}

  // Returns the names of what is left.
  std::set<std::string> run() {
    // The first client creates the objects that a process creates only once.
    Client::connect(options_.url, client_options()).close();
    const Mark before = measure(0);
    print(before);
    const test::Stopwatch watch;
    cycle();
    std::printf("%d cycles on %s in %.1f s\n", options_.cycles, options_.url.c_str(),
                static_cast<double>(watch.elapsed().count()) / 1000);
    after_closing(before);
    if (options_.memory) judge_memory();
    return found_;
  }

 private:
  void cycle() {
    auto worker = Client::connect(options_.url, client_options());
    auto other = Client::connect(options_.url, client_options());
    Rounds rounds(worker, other, options_.leak);
    const int step = Rounds::kCycles * kMarks;
    const int of_a_mark = (options_.cycles + step - 1) / step;
    for (int mark = 0; mark < kMarks; ++mark) {
      in_threads(rounds, mark * of_a_mark, (mark + 1) * of_a_mark);
      rounds.close_in_line(options_.url, client_options());
      settle(other);
      marks_.push_back(measure((mark + 1) * of_a_mark * Rounds::kCycles));
      print(marks_.back());
    }
  }

  // Runs the rounds [first, last), several at a time, because requests to servers take long. Throws
  // what a round throws.
  void in_threads(Rounds& rounds, int first, int last) const {
    std::atomic<int> next{first};
    std::vector<std::future<void>> all;
    for (int t = 0; t < options_.threads; ++t) {
      all.push_back(std::async(std::launch::async, [&] {
        for (int i = next++; i < last; i = next++) rounds.run(i);
      }));
    }
    for (auto& one : all) one.get();
  }

  // Withdrawals end in the background. An entry that is still there after a while is a leak.
  void settle(Client& client) {
    if (found_.contains("entries")) return;
    const auto left = test::eventually(
        "no entry is left", [&] { return client.list("cycles").empty(); },
        options_.leak == Leak::entry ? 1s : kLong);
    if (!left) complain("entries", std::string(left.message()));
  }

  void after_closing(const Mark& before) {
    const auto back = [&](const char* what, int Mark::*count, int allowed) {
      const auto same = test::eventually(
          what, [&] { return measure(0).*count <= before.*count + allowed; },
          options_.leak == Leak::none ? kLong : std::chrono::milliseconds(1s));
      if (!same) {
        complain(what, std::to_string(before.*count) + " before, now " +
                           std::to_string(measure(0).*count));
      }
    };
    back("descriptors", &Mark::descriptors, 0);
    back("threads", &Mark::threads, options_.url.starts_with("etcd") ? kPools : 0);
    print(measure(options_.cycles));
  }

  void judge_memory() {
    std::vector<Mark> late;
    for (const Mark& m : marks_) {
      if (m.cycle * 5 >= options_.cycles) late.push_back(m);
    }
    const double heap = slope(late, &Mark::heap);
    const double resident = slope(late, &Mark::resident);
    std::printf("growth a cycle, after the first fifth: heap %.3f bytes, resident %.3f bytes\n",
                heap, resident);
    const double most = std::max(kMostSlope, kCoarse / (0.8 * options_.cycles));
    if (heap > most) complain("memory", "the heap grows");
    if (resident > most) complain("memory", "the process grows");
  }

  void complain(const std::string& what, const std::string& detail) {
    if (!found_.insert(what).second) return;
    std::printf("LEFT BEHIND: %s: %s\n", what.c_str(), detail.c_str());
  }

  const Options options_;
  std::vector<Mark> marks_;
  std::set<std::string> found_;
};

std::optional<Options> parse(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--no-memory") {
      options.memory = false;
      continue;
    }
    if (i + 1 == words.size()) return std::nullopt;
    const std::string& value = words[++i];
    const std::string& name = words[i - 1];
    if (name == "--url") {
      options.url = value;
    } else if (name == "--cycles") {
      options.cycles = std::atoi(value.c_str());
    } else if (name == "--threads") {
      options.threads = std::atoi(value.c_str());
    } else if (name == "--leak") {
      options.leak = value == "memory"       ? Leak::memory
                     : value == "entry"      ? Leak::entry
                     : value == "descriptor" ? Leak::descriptor
                                             : Leak::none;
      if (options.leak == Leak::none) return std::nullopt;
    } else if (name == "--expect") {
      options.expect = value;
    } else {
      return std::nullopt;
    }
  }
  if (options.threads < 1 || options.cycles < kMarks * Rounds::kCycles) return std::nullopt;
  return options;
}

// The caches of malloc count as memory in use and fill slowly, so the count is exact only without
// them. They are set up before main(), so the program starts itself again.
void without_caches(char** argv) {
  const char* const name = "GLIBC_TUNABLES";
  if (std::getenv(name) != nullptr) return;  // set by the user, or by the first start
  ::setenv(name, "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0:glibc.malloc.arena_max=1", 1);
  ::execv("/proc/self/exe", argv);
  std::perror("baton_cycles: exec");  // the count is then less exact
}

int main_checked(char** argv, const std::vector<std::string>& words) {
  const auto options = parse(words);
  if (!options) {
    std::fprintf(stderr, "usage: see the head of cycles.cpp; at least %d cycles\n",
                 kMarks * Rounds::kCycles);
    return 64;
  }
  if (options->memory) without_caches(argv);
  const auto found = Run(*options).run();
  if (options->expect.empty()) return found.empty() ? 0 : 1;
  return found == std::set{options->expect} ? 0 : 1;
}

}  // namespace
}  // namespace baton::chaos

int main(int argc, char** argv) {
  try {
    return baton::chaos::main_checked(argv, {argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "baton_cycles: %s\n", e.what());
    return 1;
  }
}
