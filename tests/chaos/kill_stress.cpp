// baton_kill_stress: many processes use one lock of a file store, and one of them is killed again
// and again, every second time the holder. Afterwards the records must show that no two processes
// held the lock at once, that tokens rose, that no waiter was overtaken, that the lock was granted
// again within 50 ms after each kill, and that nothing is left in the store.
//
//   baton_kill_stress [--seconds 60] [--processes 16] [--every 100ms] [--url file:///dir]
//                     [--control no-lock] [--expect overlaps]
//
// --url: a directory that nothing else uses; without it, a new one that is removed afterwards.
// --control no-lock: the processes do not take the lock, and the checks must notice it. --expect
// overlaps: exit 0 if overlaps were found, otherwise 1. Exit codes: 0 all is well, 1 a promise is
// broken, 64 wrong usage.
#include "chaos/checks.h"
#include "chaos/heartbeat.h"
#include "chaos/ledger.h"
#include "chaos/process.h"
#include "chaos/roles.h"
#include "support/boot_clock.h"
#include "support/sanitized.h"
#include "support/temp_dir.h"

#include <baton/baton.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::boot_now;

// With sanitizers a process takes many times longer to start and to end.
constexpr milliseconds kTakeover = test::sanitized() ? 1000ms : 50ms;
// No kills at the end: unfinished files of a killed process are removed only when they are 2 s old.
constexpr milliseconds kQuiet = 2500ms;
constexpr std::size_t kHoldsPerSecond = 50'000;  // space for records; the lock is slower than this
constexpr int kKilled = 128 + 9;

struct Options {
  int seconds = 60;
  std::size_t processes = 16;
  milliseconds every{100};
  std::string directory;
  bool lock = true;
  bool expect_overlaps = false;
};

class Stress {
 public:
  Stress(const Options& options, const std::string& directory)
      : options_(options),
        directory_(directory),
        url_("file://" + directory),
        ledger_(static_cast<std::size_t>(options.seconds + 10) * kHoldsPerSecond),
        descriptor_(std::to_string(ledger_.descriptor())) {}

  void run() {
    std::optional<pid_t> observer;
    if (options_.lock) observer = start_self({"--observe", descriptor_, url_});
    for (std::size_t i = 0; i < options_.processes; ++i) team_.push_back(start_worker());
    // Wait until the workers hold locks: otherwise the first kills would only test how processes
    // start.
    const test::Stopwatch starting;
    while (ledger_.holds() < options_.processes && starting.elapsed() < 30s) pause(1ms);

    const auto end = boot_now() + std::chrono::seconds(options_.seconds);
    for (auto next = boot_now() + options_.every; next < end; next += options_.every) {
      const auto now = boot_now();
      if (now < next) std::this_thread::sleep_for(next - now);
      kill_one(kills_.size() % 2 == 0);
    }
    pause(kQuiet);
    ledger_.stop() = true;
    for (const Member& member : team_) expect_clean_end(member.pid, "worker");
    if (observer) expect_clean_end(*observer, "observer");
    pauses_ = heartbeat_.stop();
    look_for_leftovers();
  }

  // Returns 0 if no promise was broken.
  int verdict() {
    const Findings found = check(ledger_, kills_, pauses_, kTakeover);
    std::chrono::nanoseconds paused{};
    for (const Pause& pause : pauses_) paused += pause.to - pause.from;
    std::printf(
        "kill stress: %d s, %zu processes, %zu kills (%zu of the holder), %zu grants, %zu "
        "overlaps, %zu token inversions, %zu overtaken of %zu seen waiting; next grant after the "
        "kill of a holder: median %.2f ms, p99 %.2f ms, max %.2f ms; after any kill: max %.2f ms "
        "(with pauses of the machine: %.2f ms; %zu pauses, %.0f ms in all); %zu files left\n",
        options_.seconds, options_.processes, kills_.size(), found.holders_killed, found.grants,
        found.overlaps, found.inversions, found.overtaken, found.sighted,
        found.after_holder.at(0.5), found.after_holder.at(0.99), found.after_holder.at(1),
        found.after_any.at(1), found.raw.at(1), pauses_.size(),
        std::chrono::duration<double, std::milli>(paused).count(), left_);
    for (const auto& detail : found.details) std::printf("  %s\n", detail.c_str());
    for (const auto& problem : problems_) std::printf("  %s\n", problem.c_str());

    if (options_.expect_overlaps) {
      if (found.overlaps != 0) return 0;
      std::printf("BROKEN: overlaps were expected, and the checks found none\n");
      return 1;
    }
    broken(found.overlaps, "exclusion: two held at once");
    broken(found.inversions, "token: a grant without a greater token than the one before");
    broken(found.overtaken, "order: a waiter was overtaken");
    broken(found.slow, "no deadlock: nobody was granted in time after a kill");
    broken(found.unended, "record: a hold without an end");
    broken(left_, "no orphan: a file is left");
    broken(problems_.size() - left_, "processes: one did not end as it should");
    // A run whose kills hit hardly any holders proves nothing.
    broken(found.holders_killed * 10 < kills_.size() || kills_.empty(), "run: holders not hit");
    broken(options_.lock && found.sighted == 0, "run: nobody was seen waiting");
    return broken_ ? 1 : 0;
  }

 private:
  struct Member {
    std::uint32_t serial = 0;
    pid_t pid = -1;
  };

  static void pause(milliseconds length) { std::this_thread::sleep_for(length); }

  Member start_worker() {
    const std::uint32_t serial = ++started_;
    std::vector<std::string> arguments{"--work", descriptor_, options_.lock ? url_ : "",
                                       std::to_string(serial)};
    return {serial, start_self(arguments)};
  }

  Member& victim(bool holder) {
    for (const test::Stopwatch watch; holder && watch.elapsed() < 20ms;) {
      const std::uint32_t inside = ledger_.inside();
      for (Member& member : team_) {
        if (member.serial == inside) return member;
      }
      std::this_thread::yield();
    }
    return team_[random_() % team_.size()];
  }

  void kill_one(bool holder) {
    Member& member = victim(holder);
    kills_.push_back({member.serial, boot_now()});
    const int ended = kill_and_reap(member.pid);
    if (ended != kKilled) problem("worker", ended);
    member = start_worker();
  }

  void expect_clean_end(pid_t pid, const char* who) {
    const auto ended = wait_for_end(pid, 60s);
    if (!ended) {
      kill_and_reap(pid);
      problems_.push_back(std::string("a ") + who + " did not end within 60 s");
    } else if (*ended != 0) {
      problem(who, *ended);
    }
  }

  void problem(const char* who, int ended) {
    problems_.push_back(std::string("a ") + who + " ended by itself with code " +
                        std::to_string(ended));
  }

  void look_for_leftovers() {
    if (!options_.lock) return;
    Client::connect(url_).close();
    for (const auto& name : leftovers(directory_)) {
      ++left_;
      problems_.push_back("left in the store: " + name);
    }
  }

  void broken(std::size_t count, const char* promise) {
    if (count == 0) return;
    std::printf("BROKEN: %s (%zu)\n", promise, count);
    broken_ = true;
  }

  const Options& options_;
  const std::string directory_;
  const std::string url_;
  Ledger ledger_;
  const std::string descriptor_;
  Heartbeat heartbeat_;
  std::minstd_rand random_{7};
  std::vector<Member> team_;
  std::vector<Kill> kills_;
  std::vector<Pause> pauses_;
  std::vector<std::string> problems_;
  std::uint32_t started_ = 0;
  std::size_t left_ = 0;
  bool broken_ = false;
};

// start_self() begins a child with these arguments: --work DESCRIPTOR URL SERIAL PARENT, or
// --observe DESCRIPTOR URL PARENT.
int child(const std::vector<std::string>& words) {
  end_with_parent(words.back());
  Ledger ledger(std::atoi(words[1].c_str()));
  try {
    if (words[0] == "--observe") {
      observe(ledger, words[2]);
    } else {
      work(ledger, static_cast<std::uint32_t>(std::atoi(words.at(3).c_str())), words[2]);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "baton_kill_stress %s: %s\n", words[0].c_str(), e.what());
    return 1;
  }
  return 0;
}

// Returns a positive number that is followed by this ending, or 0 if the text is not one.
int number(const std::string& text, std::string_view ending) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  return end == ending && value > 0 && value <= 1'000'000 ? static_cast<int>(value) : 0;
}

std::optional<Options> parse(const std::vector<std::string>& words) {
  constexpr std::string_view kFile = "file://";
  Options options;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    const std::string& value = words[i + 1];
    if (words[i] == "--seconds") {
      options.seconds = number(value, "");
    } else if (words[i] == "--processes") {
      options.processes = static_cast<std::size_t>(number(value, ""));
    } else if (words[i] == "--every") {
      options.every = milliseconds(number(value, "ms"));
    } else if (words[i] == "--url" && value.starts_with(kFile)) {
      options.directory = value.substr(kFile.size());
    } else if (words[i] == "--control" && value == "no-lock") {
      options.lock = false;
    } else if (words[i] == "--expect" && value == "overlaps") {
      options.expect_overlaps = true;
    } else {
      return std::nullopt;
    }
  }
  const bool sound =
      words.size() % 2 == 0 && options.seconds > 0 && options.processes > 0 && options.every > 0ms;
  return sound ? std::optional(options) : std::nullopt;
}

int run(const std::vector<std::string>& words) {
  if (words.size() >= 4 && (words[0] == "--work" || words[0] == "--observe")) return child(words);
  const auto options = parse(words);
  if (!options) {
    std::fprintf(stderr,
                 "usage: baton_kill_stress [--seconds 60] [--processes 16] [--every 100ms]\n"
                 "         [--url file:///dir] [--control no-lock] [--expect overlaps]\n");
    return 64;
  }
  std::optional<test::TempDir> fresh;
  if (options->directory.empty()) fresh.emplace();
  Stress stress(*options, fresh ? *fresh / "locks" : options->directory);
  stress.run();
  return stress.verdict();
}

}  // namespace
}  // namespace baton::chaos

int main(int argc, char** argv) {
  try {
    return baton::chaos::run({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "baton_kill_stress: %s\n", e.what());
    return 1;
  }
}
