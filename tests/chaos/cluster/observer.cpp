#include "chaos/cluster/observer.h"

#include "support/boot_clock.h"

#include <exception>
#include <utility>

namespace baton::chaos {

using test::boot_now;

Observer::Observer(Cluster& cluster, const HistoryWriter& history, int locks)
    : cluster_(cluster),
      history_(history),
      locks_(locks),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

std::vector<InLine> Observer::latest() const {
  const std::lock_guard guard(mutex_);
  return latest_;
}

void Observer::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  for (const auto& [token, sight] : std::exchange(seen_, {})) present(sight);
}

void Observer::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      look();
    } catch (const std::exception&) {  // servers fail during faults
      const std::lock_guard guard(mutex_);
      latest_.clear();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// Records only the first and the last sight of an entry, and that it is gone. The sights between
// prove nothing more.
void Observer::look() {
  const auto asked = boot_now();
  auto all = cluster_.in_line(locks_);
  const auto answered = boot_now();
  std::map<std::uint64_t, Sight> now;
  for (const auto& entry : all) now.emplace(entry.token, Sight{entry, asked, answered});
  for (const auto& [token, sight] : now) {
    if (!seen_.contains(token)) present(sight);
  }
  for (const auto& [token, sight] : seen_) {
    if (now.contains(token)) continue;
    present(sight);
    Record gone;
    gone.kind = Kind::gone;
    gone.at = answered;
    gone.token = token;
    gone.lock = sight.entry.lock;
    gone.value = sight.entry.client;
    history_.write(gone);
  }
  seen_ = std::move(now);
  const std::lock_guard guard(mutex_);
  latest_ = std::move(all);
}

void Observer::present(const Sight& sight) const {
  Record record;
  record.kind = Kind::present;
  record.at = sight.asked;
  record.until = sight.answered;
  record.token = sight.entry.token;
  record.lock = sight.entry.lock;
  record.value = sight.entry.client;
  history_.write(record);
}

}  // namespace baton::chaos
