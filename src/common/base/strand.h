// Strand: what every Loop with a thread has: tasks, timers, and one step at a time. How its thread
// sleeps and is woken is up to the kinds (thread_loop.h; the etcd store's).
#pragma once

#include "common/base/clock.h"
#include "common/base/loop.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>

namespace baton::internal {

// The strand is a mutex: the loop's thread takes it for every batch of events, a calling thread
// takes it in run() if it is free. A calling thread runs its own step and a few brief ones of
// others. Timers, what was posted (the news of a reconnect may have thousands of waiters to see
// to), a long line of steps and a long chain of follow-ups it leaves to the loop's thread: a short
// call must not be kept by the work of others.
class Strand {
 public:
  using ErrorLog = std::function<void(std::string_view)>;

  Strand(const Clock& clock, ErrorLog log);
  virtual ~Strand() = default;
  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;

  // As in Loop.
  void defer(Task task) { deferred_.push_back(std::move(task)); }
  TimerId at(Time when, Task task);
  void cancel(TimerId id);
  void post(Task task);
  void post_brief(Task task);
  void run(Task task);

  // Does everything that is due now, and what follows from it, on this thread. Not on the strand.
  void settle();
  Time next_timer();  // not on the strand

  // Asks the thread to end. From any thread.
  void stop() noexcept;

  // What a calling thread does at most beside its own step.
  static constexpr std::size_t kForOthers = 4;  // brief steps
  static constexpr int kFollowUps = 64;         // deferred tasks, of each step
  // How long the loop's thread waits for the strand before callers stay away.
  static constexpr Nanos kCourtesy = std::chrono::milliseconds(1);

 protected:
  const Clock& clock() const noexcept { return clock_; }
  bool stopping() const noexcept { return stopping_.load(std::memory_order_acquire); }

  // Wakes the thread. From any thread, also after stop().
  virtual void ring() noexcept = 0;
  // The earliest timer has become earlier: the thread must not sleep beyond it. On the strand.
  virtual void arm(Time first) noexcept = 0;

  // For the loop's thread: the strand, as long as this lives. If the thread has to wait for longer
  // than kCourtesy, a caller on the strand leaves it after its present step, and other callers stay
  // away: they cannot starve it. Not at once: a short wait costs less than the thread hops of the
  // callers that would stay away.
  class Turn {
   public:
    explicit Turn(Strand& strand);
    ~Turn() { strand_.strand_.unlock(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Strand& strand_;
  };
  bool wanted() const noexcept;  // a Turn has waited for kCourtesy
  void step(Task task);          // runs it and everything it deferred; on the strand
  void work();                   // does everything that can be done now; on the strand
  Time armed() const noexcept { return armed_; }  // the thread sleeps no longer than until then
  void fired() noexcept { armed_ = kNever; }      // and has woken up
  // Marks this thread as the one on the strand.
  struct Owned {
    explicit Owned(Strand& s) : strand(s) { strand.owner_.store(std::this_thread::get_id()); }
    ~Owned() { strand.owner_.store(std::thread::id()); }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    Strand& strand;
  };
  // The thread ends: drops what is left, outside the strand, and whatever comes later. `more` is
  // called on the strand.
  void finish(const std::function<void()>& more);

 private:
  static constexpr Nanos kNotWanted = Nanos::min();

  struct Posted {
    Task task;
    bool brief;  // a calling thread may run it
  };

  std::size_t push(Task task, bool brief);  // how many are ahead of it
  bool pop_posted(Task& task);
  bool pop_brief(Task& task);  // only if the first one is
  bool has_posted();
  void call(Task& task) noexcept;
  void report(const char* what) noexcept;
  void run_due_timers();
  void run_posted();
  void follow_up(int most);
  void serve_briefly();
  void rearm();
  Time first_timer() const { return timers_.empty() ? kNever : timers_.begin()->first.first; }

  const Clock& clock_;
  const ErrorLog log_;
  std::atomic<bool> stopping_{false};

  std::mutex posted_mutex_;
  std::deque<Posted> posted_;
  bool stopped_ = false;

  std::atomic<Nanos> wanted_since_{kNotWanted};  // on the boot clock: a Turn waits
  std::mutex strand_;                            // guards everything below
  std::atomic<std::thread::id> owner_{};
  std::deque<Task> deferred_;
  std::map<std::pair<Time, std::uint64_t>, Task> timers_;
  std::unordered_map<std::uint64_t, Time> timer_keys_;
  std::uint64_t next_timer_ = 1;
  Time armed_ = kNever;
};

}  // namespace baton::internal
