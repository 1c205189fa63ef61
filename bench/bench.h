// Helpers of the benchmarks: percentiles, a scratch directory, a second process.
#pragma once

#include <benchmark/benchmark.h>

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace bench {

// Nanoseconds on a clock that is the same for all processes.
inline std::int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The sample, in microseconds, below which this share of the samples lies. Sorts the samples; there
// is at least one.
inline double percentile_us(std::vector<std::int64_t>& samples_ns, double share) {
  std::sort(samples_ns.begin(), samples_ns.end());
  const auto last = static_cast<double>(samples_ns.size() - 1);
  return static_cast<double>(samples_ns[static_cast<std::size_t>(last * share)]) / 1e3;
}

// Adds p50 and p99, in microseconds, to the results of the benchmark.
inline void report(benchmark::State& state, std::vector<std::int64_t> samples_ns) {
  if (samples_ns.empty()) {
    state.SkipWithError("no sample");
    return;
  }
  state.counters["p50_us"] = percentile_us(samples_ns, 0.50);
  state.counters["p99_us"] = percentile_us(samples_ns, 0.99);
  state.counters["samples"] = static_cast<double>(samples_ns.size());
}

// A directory for this run, removed at its end. It is made in BATON_BENCH_DIR, or else in the
// directory for temporary files.
class Scratch {
 public:
  Scratch() {
    const char* chosen = std::getenv("BATON_BENCH_DIR");
    std::string pattern =
        chosen != nullptr ? std::string(chosen) : std::filesystem::temp_directory_path().string();
    pattern += "/baton-bench-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), pattern);
    }
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }
  std::string url() const { return "file://" + path_ + "/store"; }

 private:
  std::string path_;
};

// A second process of this program, in another role, killed at the end. Never a plain fork(): a
// client cannot be used in a forked child.
class Peer {
 public:
  explicit Peer(std::vector<std::string> arguments) {
    std::vector<char*> argv{const_cast<char*>("/proc/self/exe")};
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const int error = posix_spawn(&pid_, "/proc/self/exe", nullptr, nullptr, argv.data(), environ);
    if (error != 0) throw std::system_error(error, std::generic_category(), "posix_spawn");
  }
  ~Peer() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

 private:
  pid_t pid_ = -1;
};

// A number from /proc/self/status: "Threads", "VmRSS" (in kB).
inline double proc_status(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field + ":", 0) == 0) return std::stod(line.substr(field.size() + 1));
  }
  return -1;
}

inline double open_descriptors() {
  double count = -1;  // the directory stream itself
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

}  // namespace bench
