#include "chaos/cluster/auditor.h"

#include "support/boot_clock.h"

#include <stdexcept>

namespace baton::chaos {

using namespace std::chrono_literals;
using test::boot_now;

namespace {
constexpr auto kEvery = 100ms;
constexpr std::uint64_t kRoundsToKnow = 12;  // more looks than ZkAudit needs to find a server
constexpr int kMostMended = 6;               // in one call of settle()
}  // namespace

Auditor::Auditor(Cluster& cluster, const HistoryWriter& history)
    : cluster_(cluster),
      history_(history),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Auditor::run(const std::stop_token& stop) {
  try {
    while (!stop.stop_requested()) {
      const auto found = cluster_.stray();
      std::unique_lock guard(mutex_);
      if (found && !stray_) {
        stray_ = found;
        note(Kind::stray, *found);
      }
      ++rounds_;
      changed_.notify_all();
      changed_.wait_for(guard, stop, kEvery, [] { return false; });
    }
  } catch (...) {
    const std::lock_guard guard(mutex_);
    gone_wrong_ = std::current_exception();
    changed_.notify_all();
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

bool Auditor::mend() {
  std::optional<Stray> stray;
  {
    const std::lock_guard guard(mutex_);
    if (gone_wrong_) std::rethrow_exception(gone_wrong_);
    stray = stray_;
  }
  if (!stray) return false;
  cluster_.rebuild(stray->server);
  const std::lock_guard guard(mutex_);
  note(Kind::mended, *stray);
  stray_.reset();
  return true;
}

void Auditor::settle() {
  for (int i = 0; i < kMostMended; ++i) {
    wait_rounds(kRoundsToKnow);
    if (!mend()) return;
  }
  throw std::runtime_error("the servers do not come to have the same data");
}

void Auditor::wait_rounds(std::uint64_t count) {
  std::unique_lock guard(mutex_);
  const auto enough = rounds_ + 1 + count;  // the round that is under way does not count
  changed_.wait(guard, [&] { return rounds_ >= enough || gone_wrong_; });
}

}  // namespace baton::chaos
