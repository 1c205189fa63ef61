#include "chaos/cluster/auditor.h"

#include "support/boot_clock.h"

#include <stdexcept>

namespace baton::chaos {

using namespace std::chrono_literals;
using test::boot_now;

namespace {
constexpr auto kEvery = 250ms;
constexpr std::uint64_t kRoundsToKnow = 6;  // more than a server that strays needs to be known
constexpr int kMostMended = 6;              // at one time
}  // namespace

Auditor::Auditor(Cluster& cluster, const HistoryWriter& history)
    : cluster_(cluster),
      history_(history),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Auditor::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto found = cluster_.strays();
    std::unique_lock guard(mutex_);
    for (const Stray& stray : found) {
      if (strays_.emplace(stray.server, stray).second) note(Kind::stray, stray);
    }
    ++rounds_;
    changed_.notify_all();
    changed_.wait_for(guard, stop, kEvery, [] { return false; });
  }
}

void Auditor::note(Kind kind, const Stray& stray) const {
  Record record;
  record.kind = kind;
  record.at = boot_now();
  record.value = static_cast<std::uint64_t>(stray.server);
  record.until = stray.since;
  history_.write(record);
}

void Auditor::mend() {
  for (int i = 0; i < kMostMended && mend_one(); ++i) {
  }
}

bool Auditor::mend_one() {
  Stray stray;
  {
    const std::lock_guard guard(mutex_);
    if (strays_.empty()) return false;
    stray = strays_.begin()->second;
  }
  cluster_.rebuild(stray.server);
  const std::lock_guard guard(mutex_);
  strays_.erase(stray.server);
  note(Kind::mended, stray);
  return true;
}

void Auditor::settle() {
  for (int i = 0; i < kMostMended; ++i) {
    wait_rounds(kRoundsToKnow);
    if (!mend_one()) return;
  }
  throw std::runtime_error("the servers do not come to have the same data");
}

void Auditor::wait_rounds(std::uint64_t count) {
  std::unique_lock guard(mutex_);
  const auto enough = rounds_ + 1 + count;  // one is under way
  changed_.wait(guard, [&] { return rounds_ >= enough; });
}

}  // namespace baton::chaos
