#include "common/client/callback_thread.h"

#include "common/client/handler_scope.h"
#include "common/base/mutex.h"
#include "common/base/signal_shield.h"

#include <chrono>
#include <deque>
#include <exception>
#include <map>
#include <string>
#include <utility>

namespace baton::internal {

namespace {
// Not std::thread::get_id(): stop() detaches the thread while other threads call on_thread().
thread_local const void* current_callback_thread = nullptr;
}  // namespace

struct CallbackThread::State : std::enable_shared_from_this<CallbackThread::State> {
  using Steady = Condition::Clock;
  explicit State(LogFunction l) : log(std::move(l)) {}

  // Runs tasks first, in order, then late tasks that are due. If `stopping` is set, the thread ends
  // when no task and no late task is left.
  void loop() {
    current_callback_thread = this;
    MutexLock guard(mutex);
    for (;;) {
      const auto now = Steady::now();
      if (!tasks.empty()) {
        Task task = std::move(tasks.front());
        tasks.pop_front();
        run(std::move(task), running);
      } else if (!late.empty() && late.begin()->first <= now) {
        Task task = std::move(late.begin()->second);
        late.erase(late.begin());
        run(std::move(task), running_late);
      } else if (!late.empty()) {
        changed.wait_until(guard, late.begin()->first);
      } else if (stopping) {
        break;
      } else {
        changed.wait(guard);
      }
    }
    finished = true;
    changed.notify_all();
  }

  // Leaves the mutex while the task runs.
  void run(Task task, bool& mark) BATON_REQUIRES(mutex) {
    mark = true;
    mutex.unlock();
    call(std::move(task));
    mutex.lock();
    mark = false;
    changed.notify_all();
  }

  // After stop() the thread may have ended. Then a new thread is started: a
  // handler must still be called once, and never inside this call.
  void wake() BATON_REQUIRES(mutex) {
    changed.notify_all();
    if (!finished) return;
    const SignalShield shield;
    finished = false;
    try {
      std::thread([self = shared_from_this()] { self->loop(); }).detach();
    } catch (const std::exception& e) {
      finished = true;
      log(LogLevel::error, std::string("cannot start a thread for handlers: ") + e.what());
    }
  }

  void call(Task task) noexcept {
    const HandlerScope scope;
    try {
      task();
      task = nullptr;  // its destructor is user code too
    } catch (const std::exception& e) {
      log(LogLevel::error, std::string("a handler threw: ") + e.what());
    } catch (...) {
      log(LogLevel::error, "a handler threw something that is not a std::exception");
    }
  }

  LogFunction log;
  Mutex mutex;
  Condition changed;
  std::deque<Task> tasks BATON_GUARDED_BY(mutex);
  std::multimap<Steady::time_point, Task> late BATON_GUARDED_BY(mutex);
  bool running BATON_GUARDED_BY(mutex) = false;       // a task of `tasks` is running
  bool running_late BATON_GUARDED_BY(mutex) = false;  // a task of `late` is running
  bool stopping BATON_GUARDED_BY(mutex) = false;
  bool finished BATON_GUARDED_BY(mutex) = false;
};

CallbackThread::CallbackThread(LogFunction log) : state_(std::make_shared<State>(std::move(log))) {
  const SignalShield shield;
  thread_ = std::thread([state = state_] { state->loop(); });
}

bool CallbackThread::on_thread() const noexcept { return current_callback_thread == state_.get(); }

CallbackThread::~CallbackThread() { stop(std::chrono::milliseconds(0)); }

void CallbackThread::post(Task task) {
  const MutexLock guard(state_->mutex);
  state_->tasks.push_back(std::move(task));
  state_->wake();
}

void CallbackThread::post_late(Task task, std::chrono::milliseconds delay) {
  const MutexLock guard(state_->mutex);
  state_->late.emplace(State::Steady::now() + delay, std::move(task));
  state_->wake();
}

std::size_t CallbackThread::stop(std::chrono::milliseconds wait) noexcept {
  State& s = *state_;
  std::size_t left = 0;
  bool finished = false;
  {
    const auto until = Condition::Clock::now() + wait;
    MutexLock guard(s.mutex);
    s.stopping = true;
    s.changed.notify_all();
    if (!on_thread()) {
      // Do not wait for late tasks: they may follow each other without end.
      while (!s.finished) {
        const bool drained = s.tasks.empty() && !s.running;
        if (drained && (s.running_late || !s.late.empty())) break;
        if (!s.changed.wait_until(guard, until)) break;
      }
    }
    finished = s.finished;
    left = s.tasks.size() + (s.running ? 1 : 0);
  }
  if (!thread_.joinable()) return left;
  if (finished) {
    thread_.join();
  } else {
    thread_.detach();  // a handler that blocks must not block close()
  }
  return left;
}

}  // namespace baton::internal
