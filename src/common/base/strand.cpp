#include "common/base/strand.h"

#include <exception>
#include <limits>
#include <string>

namespace baton::internal {

namespace {
constexpr int kBatch = 32;
constexpr int kAll = std::numeric_limits<int>::max();
}  // namespace

Strand::Strand(const Clock& clock, ErrorLog log) : clock_(clock), log_(std::move(log)) {}

// ---- tasks

Strand::Turn::Turn(Strand& strand) : strand_(strand) {
  if (strand_.strand_.try_lock()) return;
  strand_.wanted_since_.store(BootClock::now().time_since_epoch());
  strand_.strand_.lock();
  strand_.wanted_since_.store(kNotWanted);
}

bool Strand::wanted() const noexcept {
  const Nanos since = wanted_since_.load();
  return since != kNotWanted && BootClock::now().time_since_epoch() - since >= kCourtesy;
}

std::size_t Strand::push(Task task, bool brief) {
  const MutexLock guard(posted_mutex_);
  const std::size_t ahead = posted_.size();
  if (!stopped_) posted_.push_back({std::move(task), brief});
  return ahead;
}

bool Strand::pop_posted(Task& task) {
  const MutexLock guard(posted_mutex_);
  if (posted_.empty()) return false;
  task = std::move(posted_.front().task);
  posted_.pop_front();
  return true;
}

bool Strand::pop_brief(Task& task) {
  const MutexLock guard(posted_mutex_);
  if (posted_.empty() || !posted_.front().brief) return false;
  task = std::move(posted_.front().task);
  posted_.pop_front();
  return true;
}

bool Strand::has_posted() {
  const MutexLock guard(posted_mutex_);
  return !posted_.empty();
}

void Strand::call(Task& task) noexcept {
  try {
    task();
  } catch (const std::exception& e) {
    report(e.what());
  } catch (...) {
    report("unknown exception");
  }
}

void Strand::report(const char* what) noexcept {
  try {
    log_(std::string("a task on the client's loop threw and was dropped: ") + what);
  } catch (...) {
    // The log failed too: the exception cannot be reported.
  }
}

void Strand::follow_up(int most) {
  for (; most > 0 && !deferred_.empty(); --most) {
    Task next = std::move(deferred_.front());
    deferred_.pop_front();
    call(next);
  }
}

void Strand::step(Task task) {
  assert_on_strand();
  follow_up(kAll);  // deferred tasks that a calling thread has left
  if (task) call(task);
  task = nullptr;
  follow_up(kAll);
}

void Strand::post(Task task) {
  push(std::move(task), false);
  ring();
}

void Strand::post_brief(Task task) {
  push(std::move(task), true);
  // A thread on the strand runs the posted tasks before it leaves the strand, or rings when it
  // leaves.
  if (!owned()) ring();
}

void Strand::run(Task task) {
  if (owned()) {
    // Already on the strand: taking it again would deadlock.
    deferred_.push_back(std::move(task));
    return;
  }
  const std::size_t ahead = push(std::move(task), true);
  if (ahead > kForOthers || wanted() || !strand_.try_lock()) {
    ring();
    return;
  }
  const std::lock_guard guard(strand_, std::adopt_lock);
  if (!stopping()) serve_briefly();
}

// On a calling thread. Posted tasks run in their order: a task that is not brief, and all tasks
// behind it, wait for the loop's thread.
void Strand::serve_briefly() {
  const Owned owned(*this);
  Task task;
  for (std::size_t n = 0;
       n <= kForOthers && deferred_.empty() && !wanted() && !stopping() && pop_brief(task); ++n) {
    call(task);
    task = nullptr;
    follow_up(kFollowUps);
  }
  rearm();
  // A virtual clock arms no timer, so the thread must be woken for a timer that is due already.
  const bool due = !clock_.real() && first_timer() <= clock_.now();
  if (due || !deferred_.empty() || has_posted()) ring();
}

// Runs at most kBatch tasks, so that events of the store are served too. Timers run between the
// tasks; otherwise heartbeats would starve under load.
void Strand::run_posted() {
  Task task;
  for (int n = 0; n < kBatch && !stopping() && pop_posted(task); ++n) {
    step(std::move(task));
    run_due_timers();
  }
}

void Strand::work() {
  const Owned owned(*this);
  run_posted();
  step(nullptr);
  run_due_timers();
  rearm();
  if (has_posted()) ring();
}

void Strand::settle() {
  BATON_ASSERT(!owned());
  do {
    const Turn turn(*this);
    if (stopping()) return;
    work();
  } while (has_posted());
}

// ---- timers

TimerId Strand::at(Time when, Task task) {
  assert_on_strand();
  if (when == kNever) return TimerId::none;
  const std::uint64_t id = next_timer_++;
  timers_.emplace(std::pair(when, id), std::move(task));
  timer_keys_.emplace(id, when);
  return TimerId{id};
}

void Strand::cancel(TimerId id) {
  assert_on_strand();
  const auto key = timer_keys_.find(static_cast<std::uint64_t>(id));
  if (key == timer_keys_.end()) return;
  timers_.erase(std::pair(key->second, key->first));
  timer_keys_.erase(key);
}

void Strand::run_due_timers() {
  while (!stopping() && !timers_.empty() && timers_.begin()->first.first <= clock_.now()) {
    auto node = timers_.extract(timers_.begin());
    timer_keys_.erase(node.key().second);
    step(std::move(node.mapped()));
  }
}

// The loop's thread sleeps until the earliest timer. A later timer needs no arm(): it is found when
// the earlier timer fires. That saves a system call on most acquires.
void Strand::rearm() {
  if (!clock_.real()) return;
  const Time first = first_timer();
  if (first >= armed_) return;
  armed_ = first;
  arm(first);
}

Time Strand::next_timer() {
  BATON_ASSERT(!owned());
  const std::lock_guard guard(strand_);
  return first_timer();
}

// ---- the end

void Strand::stop() noexcept {
  stopping_.store(true, std::memory_order_release);
  ring();
}

void Strand::finish(const std::function<void()>& more) {
  // Destroyed after the locks below are released: destructors of tasks may do anything.
  std::deque<Posted> left_posted;
  decltype(deferred_) left_deferred;
  decltype(timers_) left_timers;
  const std::lock_guard guard(strand_);
  const MutexLock posted_guard(posted_mutex_);
  stopped_ = true;
  finished_.store(true, std::memory_order_release);
  left_posted.swap(posted_);
  left_deferred.swap(deferred_);
  left_timers.swap(timers_);
  timer_keys_.clear();
  more();
}

}  // namespace baton::internal
