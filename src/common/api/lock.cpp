#include <baton/lock.h>

#include "common/client/hold.h"

#include <utility>

namespace baton {

namespace {
const std::string kNoName;

void check_timeout(std::chrono::milliseconds timeout, const char* what) {
  if (timeout.count() < 0) {
    throw Error(Errc::invalid_argument, std::string(what) + ": the timeout is negative");
  }
}

Error not_held(const char* what, const std::string& name) {
  return {Errc::not_held, std::string(what) + " \"" + name + "\": this Lock holds nothing"};
}

Error lost(const char* what, const internal::Hold& hold) {
  return {Errc::lock_lost, std::string(what) + " \"" + hold.name().text() + "\" with token " +
                               std::to_string(hold.token()) + ": the lock was lost (" +
                               hold.lost_reason().message() + ")"};
}
}  // namespace

Lock::Lock() noexcept = default;
Lock::Lock(std::shared_ptr<internal::Hold> hold) noexcept : hold_(std::move(hold)) {}
Lock::Lock(Lock&& other) noexcept : hold_(std::exchange(other.hold_, nullptr)) {}

Lock& Lock::operator=(Lock&& other) noexcept {
  if (this != &other) {
    drop();
    hold_ = std::exchange(other.hold_, nullptr);
  }
  return *this;
}

Lock::~Lock() { drop(); }

void Lock::drop() noexcept {
  const auto hold = std::exchange(hold_, nullptr);
  if (hold == nullptr || hold->forked() || !hold->become_released()) return;
  if (const auto keeper = hold->keeper()) keeper->withdraw_hold(hold);
}

std::uint64_t Lock::token() const noexcept { return hold_ ? hold_->token() : 0; }
bool Lock::valid() const noexcept { return hold_ && hold_->valid(); }
std::chrono::milliseconds Lock::valid_for() const noexcept {
  return hold_ ? hold_->valid_for() : std::chrono::milliseconds(0);
}
const std::string& Lock::name() const noexcept { return hold_ ? hold_->name().text() : kNoName; }
std::error_code Lock::lost_reason() const noexcept {
  return hold_ ? hold_->lost_reason() : std::error_code();
}
LockState Lock::state() const noexcept { return hold_ ? hold_->state() : LockState::released; }
std::stop_token Lock::lost_token() const noexcept {
  return hold_ ? hold_->lost_token() : std::stop_token();
}

void Lock::verify(std::chrono::milliseconds timeout) {
  check_timeout(timeout, "verify");
  if (hold_ == nullptr || state() == LockState::released) throw not_held("verify", name());
  if (!hold_->valid()) throw lost("verify", *hold_);
  const auto keeper = hold_->keeper();
  if (keeper == nullptr) throw lost("verify", *hold_);
  keeper->verify_and_wait(hold_, timeout);
}

void Lock::release(std::chrono::milliseconds timeout) {
  check_timeout(timeout, "release");
  if (hold_ == nullptr || state() == LockState::released) throw not_held("release", name());
  // An evicted hold, or a hold past its deadline, is lost even before the client has declared it
  // lost. The client soon declares it, requests stop on lost_token() and removes the entry.
  if (!hold_->valid() || !hold_->become_released()) throw lost("release", *hold_);
  const auto keeper = hold_->keeper();
  if (keeper == nullptr) throw lost("release", *hold_);
  keeper->release_and_wait(hold_, timeout);
}

}  // namespace baton
