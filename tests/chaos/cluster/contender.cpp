#include "chaos/cluster/contender.h"

#include "support/boot_clock.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

namespace baton::chaos {

using namespace std::chrono_literals;
using test::boot_now;

namespace {
constexpr std::chrono::milliseconds kReleaseTime = 5s;
}

std::string lock_name(std::uint32_t lock) { return "lock" + std::to_string(lock); }

// ---- one hold

class Contender::Holding {
 public:
  Holding(Workplace& place, Lock lock, std::uint64_t op, std::uint32_t which)
      : place_(place),
        lock_(std::move(lock)),
        op_(op),
        which_(which),
        mourns_(op % 4 == 0 && !missing().finality) {
    token_ = missing().token ? ++place_.own_tokens : lock_.token();
    write(Kind::granted, boot_now());
    if (missing().valid) return;
    on_lost_.emplace(lock_.lost_token(), [this] {
      write(Kind::lost, boot_now(), 0ns, static_cast<std::uint64_t>(lock_.lost_reason().value()));
      lost_ = true;
    });
  }

  // Asks valid() and records the result.
  bool look() {
    const bool over = lost_ || invalid_;  // read before valid() is asked
    const auto at = boot_now();
    if (missing().valid) {
      write(Kind::valid, at, at + place_.plan.session);
      return true;
    }
    if (lock_.valid()) {
      const auto left = lock_.valid_for();
      const bool for_ever = left == std::chrono::milliseconds::max();
      write(over ? Kind::revived : Kind::valid, at,
            for_ever ? std::chrono::nanoseconds::max() : at + left);
      return true;
    }
    if (!std::exchange(invalid_, true)) write(Kind::invalid, boot_now());
    return false;
  }
  void stay(std::chrono::milliseconds time, const std::stop_token& stop) {
    const auto end = boot_now() + time;
    const bool hoards = missing().release && which_ == 0;
    while (look() && (hoards || boot_now() < end) && !stop.stop_requested()) {
      const std::chrono::nanoseconds left = hoards ? 10ms : end - boot_now();
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(10ms, left));
    }
    if (invalid_ && missing().finality) take_again(stop);
    // A lost lock stays lost, even when late answers arrive.
    const auto farewell = boot_now() + (mourns_ ? 2 * place_.plan.session : 10ms);
    while (invalid_ && boot_now() < farewell && !stop.stop_requested()) {
      std::this_thread::sleep_for(mourns_ ? 20ms : 2ms);
      look();
    }
  }
  // blind: writes without asking valid() again, so only the token protects the register.
  void work(std::chrono::milliseconds time, bool blind, const std::stop_token& stop) {
    look();
    const auto& protected_one = place_.registers.at(which_);
    const auto value = protected_one.read(lock_.token());
    if (value) write(Kind::read, boot_now(), 0ns, *value);
    stay(time, stop);
    if (!value || !(blind || look())) return;
    const bool accepted = protected_one.write(lock_.token(), *value + 1);
    const auto now = boot_now();
    write(Kind::wrote, now, accepted ? now : 0ns, *value + 1);
  }
  void end(bool confirm) {
    if (!invalid_) look();
    const auto now = boot_now();
    write(Kind::release, now, confirm ? now + kReleaseTime : 0ns);
    if (!confirm) {
      on_lost_.reset();
      lock_ = Lock();
      return;
    }
    try {
      lock_.release(kReleaseTime);
      write(Kind::released, boot_now());
    } catch (const Error& error) {
      write(Kind::unsure, boot_now(), 0ns, static_cast<std::uint64_t>(error.errc()));
    }
  }

 private:
  const Missing& missing() const { return place_.plan.missing; }

  // For the control "revive": acquires a lost lock again and uses it as the same hold.
  void take_again(const std::stop_token& stop) {
    on_lost_.reset();
    auto result =
        place_.client.mutex(lock_name(which_)).acquire_result({.timeout = 10s, .stop = stop});
    if (result) lock_ = std::move(result).value();
  }

  void write(Kind kind, std::chrono::nanoseconds at, std::chrono::nanoseconds until = 0ns,
             std::uint64_t value = 0) const {
    place_.history.write({.at = at,
                          .client = 0,
                          .kind = kind,
                          .op = op_,
                          .lock = which_,
                          .token = token_,
                          .until = until,
                          .value = value,
                          .text = {}});
  }

  Workplace& place_;
  Lock lock_;
  const std::uint64_t op_;
  const std::uint32_t which_;
  const bool mourns_;  // keeps the lock for some time after it is lost
  std::uint64_t token_ = 0;
  bool invalid_ = false;
  std::atomic<bool> lost_{false};
  std::optional<std::stop_callback<std::function<void()>>> on_lost_;  // last: destroyed first
};

// ---- acquires

void Contender::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) once(stop);
}

void Contender::once(const std::stop_token& stop) {
  const auto which = static_cast<std::uint32_t>(below(static_cast<unsigned>(place_.plan.locks)));
  const std::uint64_t op = ++place_.ops;
  const auto time = hold_time();
  const bool blind = below(2) == 0 || place_.plan.missing.check;
  const bool confirm = below(5) != 0;
  auto mutex = place_.client.mutex(lock_name(which));
  Record record;
  record.kind = Kind::asked;
  record.op = op;
  record.lock = which;
  const auto way = choose();
  record.at = boot_now();
  if (way.timeout) record.until = record.at + *way.timeout;
  place_.history.write(record);
  record.until = 0ns;
  const Missing& missing = place_.plan.missing;
  if (missing.closing && op % 5 == 1 && op < 50) forget_a_client(place_.plan.url);
  if (missing.queue && op % 2 == 0) {
    jump_the_queue(place_.client, lock_name(which), place_.history, op, which, time, stop);
    return;
  }
  auto result = acquire(mutex, way, stop);
  if (result) {
    Holding holding(place_, std::move(result).value(), op, which);
    holding.work(time, blind, stop);
    holding.end(confirm);
    return;
  }
  record.kind = Kind::gave_up;
  auto reason = result.error().errc();
  // If the store is away for the whole time of one attempt, the attempt ends with
  // connection_failed. That counts as its timeout.
  if (way.kind == Way::Kind::attempt && reason == Errc::connection_failed &&
      boot_now() - record.at >= kConnectTime) {
    reason = Errc::timeout;
  }
  record.value = static_cast<std::uint64_t>(reason);
  record.at = boot_now();
  place_.history.write(record);
  // Waits a moment: a loop of attempts that fail at once would only cause traffic.
  std::this_thread::sleep_for(std::chrono::milliseconds(below(30)));
}

Contender::Way Contender::choose() {
  const auto percent = below(100);
  if (percent < 50) return {Way::Kind::wait, {}};
  if (percent < 70) return {Way::Kind::wait, std::chrono::milliseconds(1 + below(3'000))};
  if (percent < 80) return {Way::Kind::cancel, {}};
  if (percent < 85) return {Way::Kind::attempt, kConnectTime};
  return {Way::Kind::async, {}};
}

Result<Lock> Contender::acquire(DistributedMutex& mutex, const Way& way,
                                const std::stop_token& stop) {
  const bool once = way.kind == Way::Kind::attempt;
  const AcquireOptions options{.timeout = once ? std::nullopt : way.timeout, .stop = stop};
  if (way.kind == Way::Kind::wait) return mutex.acquire_result(options);
  if (way.kind == Way::Kind::cancel) return acquire_and_cancel(mutex, stop);
  if (once) {
    try {
      auto lock = mutex.try_acquire(options);
      if (lock) return *std::move(lock);
      return Error(Errc::timeout, "somebody else has it");
    } catch (const Error& error) {
      return error;
    }
  }
  std::promise<Result<Lock>> promise;
  auto future = promise.get_future();
  mutex.acquire_async(options, [promise = std::move(promise)](Result<Lock> lock) mutable {
    promise.set_value(std::move(lock));
  });
  return future.get();
}

// Cancels the acquire after a random time.
Result<Lock> Contender::acquire_and_cancel(DistributedMutex& mutex, const std::stop_token& stop) {
  std::stop_source source;
  const std::stop_callback also(stop, [&] { source.request_stop(); });
  const auto time = std::chrono::milliseconds(below(500));
  const std::jthread later([&](const std::stop_token& done) {
    std::mutex mine;
    std::condition_variable_any waiting;
    std::unique_lock guard(mine);
    waiting.wait_for(guard, done, time, [] { return false; });
    source.request_stop();
  });
  return mutex.acquire_result({.timeout = {}, .stop = source.get_token()});
}

// Most holds are short; a few last longer than half a session timeout.
std::chrono::milliseconds Contender::hold_time() {
  if (place_.plan.missing.needs_pauses()) return 3s;  // long enough for a pause during the hold
  if (below(150) == 0) return place_.plan.session / 2 + std::chrono::milliseconds(below(500));
  const auto percent = below(101);
  return std::chrono::milliseconds(percent * percent * percent / 10'000);
}

}  // namespace baton::chaos
