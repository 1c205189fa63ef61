#include "chaos/heartbeat.h"

#include "support/boot_clock.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>

namespace baton::chaos {

using namespace std::chrono_literals;

Heartbeat::Heartbeat() {
  cpu_set_t ours;
  CPU_ZERO(&ours);
  ::sched_getaffinity(0, sizeof ours, &ours);
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &ours)) continue;
    threads_.emplace_back([this, i](const std::stop_token& stop) { beat(stop, i); });
  }
}

void Heartbeat::beat(const std::stop_token& stop, std::size_t processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  ::pthread_setaffinity_np(::pthread_self(), sizeof one, &one);
  while (!stop.stop_requested()) {
    const auto due = test::boot_now() + 1ms;
    std::this_thread::sleep_for(1ms);
    const auto woken = test::boot_now();
    if (woken - due <= 1ms) continue;
    const std::lock_guard guard(mutex_);
    pauses_.push_back({due, woken});
  }
}

std::vector<Pause> Heartbeat::stop() {
  threads_.clear();
  std::sort(pauses_.begin(), pauses_.end(),
            [](const Pause& a, const Pause& b) { return a.from < b.from; });
  std::vector<Pause> merged;
  for (const Pause& pause : pauses_) {
    if (!merged.empty() && pause.from <= merged.back().to) {
      merged.back().to = std::max(merged.back().to, pause.to);
    } else {
      merged.push_back(pause);
    }
  }
  return merged;
}

std::chrono::nanoseconds paused_between(const std::vector<Pause>& pauses,
                                        std::chrono::nanoseconds from,
                                        std::chrono::nanoseconds to) {
  auto it = std::lower_bound(pauses.begin(), pauses.end(), from,
                             [](const Pause& pause, auto at) { return pause.to <= at; });
  std::chrono::nanoseconds sum{};
  for (; it != pauses.end() && it->from < to; ++it) {
    sum += std::min(it->to, to) - std::max(it->from, from);
  }
  return sum;
}

}  // namespace baton::chaos
