#include "etcd/completion_loop.h"
#include "common/base/mutex.h"

#include "common/base/signal_shield.h"
#include "etcd/wall_clock.h"

#include <grpc/grpc.h>
#include <grpc/support/time.h>
#include <grpcpp/alarm.h>

#include <algorithm>
#include <atomic>
#include <unordered_set>
#include <utility>

namespace baton::etcd {

namespace {

// gRPC's clock stands still while the machine is suspended; baton's clock does not. So the thread
// never sleeps longer than this before it reads baton's clock again.
constexpr std::chrono::seconds kLongestSleep{1};
constexpr int kBatch = 64;
// Of several threads that wait in gRPC, one waits for the network, and the others sleep until a
// time of the wall clock. If the wall clock is set back, they oversleep by the size of the step.
// nudge() wakes this loop's thread when it has overslept by this long.
constexpr std::chrono::milliseconds kOverslept{100};

// gRPC ends its threads when its last user is gone. Starting them again is expensive and, in gRPC
// 1.51, has races. So baton keeps one reference for the life of the process.
void keep_grpc() {
  static const bool kept = [] {
    grpc_init();
    return true;
  }();
  static_cast<void>(kept);
}

}  // namespace

class CompletionLoop::State final : public Strand, public CallRegistry {
 public:
  explicit State(ErrorLog log) : Strand(real_clock(), std::move(log)) {}

  grpc::CompletionQueue& queue() noexcept override { return queue_; }
  bool ended() const noexcept override { return stopping(); }
  void began(CompletionTag* call) override { calls_.insert(call); }
  void finished(CompletionTag* call) override { calls_.erase(call); }

  void loop() {
    thread_ = std::this_thread::get_id();
    Time until = kNever;
    while (!stopping()) {
      void* tag = nullptr;
      bool ok = false;
      const auto status = rest(&tag, &ok, until);
      const Turn turn(*this);
      if (status == grpc::CompletionQueue::GOT_EVENT) {
        got(tag, ok);
        // Take further completions that are ready: responses often arrive together.
        for (int n = 1; n < kBatch; ++n) {
          if (queue_.AsyncNext(&tag, &ok, gpr_inf_past(GPR_CLOCK_MONOTONIC)) !=
              grpc::CompletionQueue::GOT_EVENT) {
            break;
          }
          got(tag, ok);
        }
      }
      if (clock().now() >= armed()) fired();
      work();
      until = armed();
    }
    // No call can be started any more, because run() and post() do nothing now. Cancel the calls
    // under way, and wait for their tags.
    finish([this] {
      for (CompletionTag* call : calls_) call->cancel();
    });
    {
      const MutexLock guard(bell_mutex_);
      shut_ = true;
    }
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
      if (tag != &bell_) static_cast<CompletionTag*>(tag)->complete(ok, true);
    }
  }

  void nudge() noexcept {
    wall_clock_was_set_back();  // an idle client makes no other call that checks this
    const Time until = asleep_until_.load();
    if (until != kNever && real_clock().now() > until + kOverslept) ring();
  }

 private:
  void got(void* tag, bool ok) {
    if (tag == &bell_) {
      const MutexLock guard(bell_mutex_);
      ringing_ = false;
      return;
    }
    const Owned owned(*this);
    step([tag, ok] { static_cast<CompletionTag*>(tag)->complete(ok, false); });
  }

  grpc::CompletionQueue::NextStatus rest(void** tag, bool* ok, Time until) {
    const Time now = real_clock().now();
    const Nanos left = until <= now ? Nanos(0) : std::min<Nanos>(until - now, Nanos(kLongestSleep));
    asleep_until_.store(now + left);
    const auto status =
        queue_.AsyncNext(tag, ok,
                         gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                      gpr_time_from_nanos(left.count(), GPR_TIMESPAN)));
    asleep_until_.store(kNever);
    return status;
  }

  void ring() noexcept override {
    const MutexLock guard(bell_mutex_);
    if (shut_ || ringing_) return;
    ringing_ = true;
    const SignalShield shield;  // runs on any thread, and gRPC may start threads
    // The alarm may only be set again after its tag was returned; `ringing_` ensures this.
    bell_.Set(&queue_, gpr_inf_past(GPR_CLOCK_MONOTONIC), &bell_);
  }

  void arm(Time) noexcept override {
    if (thread_.load() != std::this_thread::get_id()) ring();  // it checks before it sleeps
  }

  grpc::CompletionQueue queue_;
  std::atomic<std::thread::id> thread_{};
  std::atomic<Time> asleep_until_{kNever};  // kNever: awake
  Mutex bell_mutex_;
  grpc::Alarm bell_;  // set under bell_mutex_
  bool ringing_ BATON_GUARDED_BY(bell_mutex_) = false;
  bool shut_ BATON_GUARDED_BY(bell_mutex_) = false;
  std::unordered_set<CompletionTag*> calls_;  // use on the strand
};

CompletionLoop::CompletionLoop(Strand::ErrorLog log) {
  const SignalShield shield;  // also covers the threads that gRPC starts
  keep_grpc();
  state_ = std::make_shared<State>(std::move(log));
  thread_ = std::thread([state = state_] { state->loop(); });
}

CompletionLoop::~CompletionLoop() {
  stop();
  const SignalShield shield;
  state_.reset();
}

void CompletionLoop::defer(Task task) { state_->defer(std::move(task)); }
bool CompletionLoop::on_strand() const noexcept { return state_->on_strand(); }
TimerId CompletionLoop::at(Time when, Task task) { return state_->at(when, std::move(task)); }
void CompletionLoop::cancel(TimerId id) { state_->cancel(id); }
void CompletionLoop::post(Task task) { state_->post(std::move(task)); }
void CompletionLoop::run(Task task) { state_->run(std::move(task)); }
void CompletionLoop::nudge() noexcept { state_->nudge(); }

std::shared_ptr<CallRegistry> CompletionLoop::calls() const { return state_; }

void CompletionLoop::stop() noexcept {
  state_->stop();
  if (!thread_.joinable()) return;
  if (on_thread()) {
    thread_.detach();  // the thread keeps its State alive
  } else {
    thread_.join();
  }
}

}  // namespace baton::etcd
