// Strand: runs the tasks and timers of a Loop with a thread, one step at a time. The derived class
// decides how its thread sleeps and how it is woken (thread_loop.h, etcd/completion_loop.h).
#pragma once

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/loop.h"
#include "common/base/mutex.h"

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

// The strand is a mutex. The loop's thread takes it for every batch of events; a calling thread
// takes it in run() if it is free. A calling thread runs its own step and a few brief steps of
// other callers. It leaves all other work to the loop's thread, so that the work of others does not
// delay a short call: timers, tasks of post() (a reconnect may concern thousands of waiters), a
// long queue of steps, and a long chain of deferred tasks.
class Strand {
 public:
  using ErrorLog = std::function<void(std::string_view)>;

  Strand(const Clock& clock, ErrorLog log);
  virtual ~Strand() = default;
  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;

  // As in Loop.
  bool on_strand() const noexcept { return owned() || finished_.load(std::memory_order_acquire); }
  void assert_on_strand() const { BATON_ASSERT(on_strand()); }
  void defer(Task task) {
    assert_on_strand();
    deferred_.push_back(std::move(task));
  }
  TimerId at(Time when, Task task);
  void cancel(TimerId id);
  void post(Task task);
  void post_brief(Task task);
  void run(Task task);

  // Runs everything that is due now, and all tasks that result from it, on this thread. Not on the
  // strand.
  void settle();
  Time next_timer();  // not on the strand

  // Asks the thread to end. From any thread.
  void stop() noexcept;

  // Limits for the work of a calling thread beside its own step.
  static constexpr std::size_t kForOthers = 4;  // brief steps
  static constexpr int kFollowUps = 64;         // deferred tasks, of each step
  // When the loop's thread has waited this long for the strand, calling threads no longer take it.
  static constexpr Nanos kCourtesy = std::chrono::milliseconds(1);

 protected:
  const Clock& clock() const noexcept { return clock_; }
  bool stopping() const noexcept { return stopping_.load(std::memory_order_acquire); }

  // Wakes the thread. From any thread, also after stop().
  virtual void ring() noexcept = 0;
  // Called when there is a new earliest timer: the thread must not sleep beyond it. On the strand.
  virtual void arm(Time first) noexcept = 0;

  // Holds the strand for the loop's thread while it lives. After the thread has waited for
  // kCourtesy, a calling thread on the strand leaves it after its current step, and other calling
  // threads do not take it, so they cannot starve the loop's thread. They do not give way earlier:
  // a short wait costs less than the thread hops of callers that give way.
  class Turn {
   public:
    explicit Turn(Strand& strand);
    ~Turn() { strand_.strand_.unlock(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Strand& strand_;
  };
  bool wanted() const noexcept;  // whether a Turn has waited for kCourtesy
  void step(Task task);          // runs the task and everything it deferred; on the strand
  void work();                   // runs what can run now, at most a batch of tasks; on the strand
  Time armed() const noexcept { return armed_; }  // the thread sleeps at most until then
  void fired() noexcept { armed_ = kNever; }      // the thread has woken up: no timer is armed
  // Marks this thread as the thread on the strand.
  struct Owned {
    explicit Owned(Strand& s) : strand(s) {
      BATON_ASSERT(s.owner_.load() == std::thread::id());
      strand.owner_.store(std::this_thread::get_id());
    }
    ~Owned() { strand.owner_.store(std::thread::id()); }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    Strand& strand;
  };
  // Called when the thread ends. Takes out all tasks and timers, calls `more` on the strand, and
  // destroys them after it has left the strand. Tasks that are posted later are dropped.
  void finish(const std::function<void()>& more);

 private:
  static constexpr Nanos kNotWanted = Nanos::min();

  struct Posted {
    Task task;
    bool brief;  // a calling thread may run it
  };

  // Whether this thread is the thread on the strand.
  bool owned() const noexcept { return owner_.load() == std::this_thread::get_id(); }
  std::size_t push(Task task, bool brief);  // returns how many tasks are ahead of it
  bool pop_posted(Task& task);
  bool pop_brief(Task& task);  // only if the first task is brief
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
  std::atomic<bool> finished_{false};  // no step runs any more

  Mutex posted_mutex_;
  std::deque<Posted> posted_ BATON_GUARDED_BY(posted_mutex_);
  bool stopped_ BATON_GUARDED_BY(posted_mutex_) = false;

  std::atomic<Nanos> wanted_since_{kNotWanted};  // on the boot clock: since when a Turn waits
  std::mutex strand_;                            // guards everything below
  std::atomic<std::thread::id> owner_{};
  std::deque<Task> deferred_;
  std::map<std::pair<Time, std::uint64_t>, Task> timers_;
  std::unordered_map<std::uint64_t, Time> timer_keys_;
  std::uint64_t next_timer_ = 1;
  Time armed_ = kNever;
};

}  // namespace baton::internal
