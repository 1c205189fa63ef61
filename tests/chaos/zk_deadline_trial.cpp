#include "chaos/zk_deadline.h"

#include "support/boot_clock.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace baton::chaos {

using test::boot_now;
using namespace std::chrono_literals;

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

// The server is asked in a separate session, which is long enough for any election.
Trial::Trial(std::vector<Believer> believers, const std::string& majority)
    : believers_(std::move(believers)),
      server_(majority, 20s),
      verdicts_(believers_.size()),
      asks_believers_([this](const std::stop_token& stop) { ask_believers(stop); }),
      asks_server_([this](const std::stop_token& stop) { ask_server(stop); }) {}

void Trial::ask_believers(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    for (std::size_t i = 0; i < believers_.size(); ++i) sample(believers_[i], verdicts_[i]);
    std::this_thread::sleep_for(1ms);
  }
}

void Trial::sample(const Believer& believer, Verdict& verdict) {
  std::optional<nanoseconds> belief;
  nanoseconds after{};
  // If this thread was not run between the two clock readings, the result is inaccurate: ask again.
  for (int tries = 0; tries < 10; ++tries) {
    const auto before = boot_now();
    belief = believer.belief();
    after = boot_now();
    if (after - before < 1ms) break;
  }
  const std::lock_guard guard(mutex_);
  if (!belief) {
    if (!verdict.ended) verdict.until = std::min(verdict.until, after);
    verdict.ended = true;
  } else {
    verdict.came_back |= verdict.ended;
    verdict.until = after + *belief;
  }
}

void Trial::ask_server(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    for (std::size_t i = 0; i < believers_.size(); ++i) {
      {
        const std::lock_guard guard(mutex_);
        if (verdicts_[i].gone) continue;
      }
      const auto before = boot_now();
      const int code = server_.exists(believers_[i].node);
      const std::lock_guard guard(mutex_);
      if (code == ZOK) verdicts_[i].present = before;
      if (code == ZNONODE) verdicts_[i].gone = true;
    }
    std::this_thread::sleep_for(2ms);
  }
}

bool Trial::all_gone() const {
  const std::lock_guard guard(mutex_);
  return std::all_of(verdicts_.begin(), verdicts_.end(), [](const auto& v) { return v.gone; });
}

bool Trial::ended(std::size_t count) const {
  const std::lock_guard guard(mutex_);
  return std::all_of(verdicts_.begin(), verdicts_.begin() + static_cast<std::ptrdiff_t>(count),
                     [](const auto& v) { return v.ended; });
}

std::vector<Verdict> Trial::verdicts() const {
  const std::lock_guard guard(mutex_);
  return verdicts_;
}

void Margins::add(int run, const std::vector<double>& of_holders, const std::string& aside) {
  std::printf("[  margin  ] %s, run %d:", scenario_.c_str(), run);
  if (!of_holders.empty()) {
    smallest_.push_back(*std::min_element(of_holders.begin(), of_holders.end()));
    all_.insert(all_.end(), of_holders.begin(), of_holders.end());
    std::printf(" %.0f ms, all:", smallest_.back());
  }
  for (const double margin : of_holders) std::printf(" %.0f", margin);
  std::printf("%s\n", aside.c_str());
  std::fflush(stdout);
}

Margins::~Margins() {
  if (all_.empty()) return;
  std::printf(
      "[  margin  ] %s: %zu runs, smallest %.0f ms, median of the runs %.0f ms, %zu holders, "
      "median %.0f ms\n",
      scenario_.c_str(), smallest_.size(), *std::min_element(all_.begin(), all_.end()),
      median(smallest_), all_.size(), median(all_));
  std::fflush(stdout);
}

int runs() {
  const char* const given = std::getenv("BATON_RUNS");
  return given == nullptr ? 1 : std::max(1, std::atoi(given));
}

void wait_for_phase(std::chrono::milliseconds phase, std::chrono::milliseconds period) {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  const nanoseconds now = std::chrono::seconds(t.tv_sec) + nanoseconds(t.tv_nsec);
  const nanoseconds ahead = (phase - now % period + 2 * period) % nanoseconds(period);
  const nanoseconds then = now + ahead;
  t.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(then).count();
  t.tv_nsec = (then % 1s).count();
  ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
}

}  // namespace baton::chaos
