#include "common/callback_thread.h"

#include "common/signal_shield.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

namespace baton::internal {

namespace {
// Not std::thread::get_id(): stop() detaches the thread while others ask.
thread_local const void* current_callback_thread = nullptr;
}  // namespace

struct CallbackThread::State {
  explicit State(LogFunction l) : log(std::move(l)) {}

  void loop() {
    current_callback_thread = this;
    std::unique_lock guard(mutex);
    for (;;) {
      changed.wait(guard, [this] { return stopping || !tasks.empty(); });
      if (tasks.empty()) break;
      Task task = std::move(tasks.front());
      tasks.pop_front();
      guard.unlock();
      call(std::move(task));
      guard.lock();
    }
    finished = true;
    changed.notify_all();
  }

  void call(Task task) noexcept {
    try {
      task();
      task = nullptr;  // its destructor is user code too
    } catch (const std::exception& e) {
      log(LogLevel::error, std::string("a handler threw: ") + e.what());
    } catch (...) {
      log(LogLevel::error, "a handler threw something that is no std::exception");
    }
  }

  LogFunction log;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Task> tasks;
  bool stopping = false;
  bool finished = false;
};

CallbackThread::CallbackThread(LogFunction log) : state_(std::make_shared<State>(std::move(log))) {
  const SignalShield shield;
  thread_ = std::thread([state = state_] { state->loop(); });
}

bool CallbackThread::on_thread() const noexcept { return current_callback_thread == state_.get(); }

CallbackThread::~CallbackThread() { stop(std::chrono::milliseconds(0)); }

void CallbackThread::post(Task task) {
  const std::lock_guard guard(state_->mutex);
  if (state_->finished) {
    // Closed already; the handler must be called once all the same, and never inside this call.
    const SignalShield shield;
    state_->tasks.push_back(std::move(task));
    state_->finished = false;
    try {
      std::thread([state = state_] { state->loop(); }).detach();
    } catch (const std::exception& e) {
      state_->finished = true;
      state_->log(LogLevel::error, std::string("cannot start a thread for handlers: ") + e.what());
    }
    return;
  }
  state_->tasks.push_back(std::move(task));
  state_->changed.notify_all();
}

void CallbackThread::stop(std::chrono::milliseconds wait) noexcept {
  bool finished = false;
  {
    std::unique_lock guard(state_->mutex);
    state_->stopping = true;
    state_->changed.notify_all();
    if (!on_thread()) {
      finished = state_->changed.wait_for(guard, wait, [this] { return state_->finished; });
    }
  }
  if (!thread_.joinable()) return;
  if (finished) {
    thread_.join();
  } else {
    thread_.detach();  // a handler that blocks must not block close()
  }
}

}  // namespace baton::internal
