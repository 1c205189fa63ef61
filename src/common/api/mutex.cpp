#include <baton/mutex.h>

#include "common/client/async.h"
#include "common/client/mutex_impl.h"

#include <utility>

namespace baton {

using internal::MutexImpl;
using std::chrono::milliseconds;

DistributedMutex::DistributedMutex(std::shared_ptr<MutexImpl> impl) noexcept
    : impl_(std::move(impl)) {}

const MutexImpl& DistributedMutex::impl(const char* what) const {
  if (impl_ == nullptr) {
    throw Error(Errc::closed, std::string(what) +
                                  ": this DistributedMutex was moved from and names no lock; use "
                                  "the object that it was moved to, or Client::mutex()");
  }
  return *impl_;
}

void DistributedMutex::lock() {
  const auto& mutex = impl("lock");
  mutex.client().lock_thread(mutex.name(), std::nullopt);
}
bool DistributedMutex::try_lock() { return try_lock_ms(milliseconds(0)); }
bool DistributedMutex::try_lock_ms(milliseconds timeout) {
  const auto& mutex = impl("try_lock");
  return mutex.client().lock_thread(mutex.name(), timeout);
}
void DistributedMutex::unlock() noexcept {
  if (impl_ != nullptr) impl_->client().unlock_thread(impl_->name());
}

Result<Lock> DistributedMutex::acquire_result(AcquireOptions options) noexcept {
  try {
    const auto& mutex = impl("acquire");
    return mutex.client().acquire(mutex.name(), options, false);
  } catch (const Error& e) {
    return e;
  } catch (const std::exception& e) {
    return Error(Errc::store_error, std::string("acquire: ") + e.what());
  }
}

Lock DistributedMutex::acquire(AcquireOptions options) {
  const auto& mutex = impl("acquire");
  return mutex.client().acquire(mutex.name(), options, false).value();
}

Lock DistributedMutex::acquire_for(milliseconds timeout) { return acquire({timeout, {}}); }

TryLock DistributedMutex::try_acquire(AcquireOptions options) {
  if (!options.timeout) options.timeout = milliseconds(0);
  const auto& mutex = impl("try_acquire");
  auto lock = mutex.client().acquire(mutex.name(), options, false);
  if (lock) return std::move(lock).value();
  if (lock.error().errc() == Errc::timeout) return std::nullopt;
  throw lock.error();
}

TryLock DistributedMutex::try_acquire_for(milliseconds timeout) {
  return try_acquire({timeout, {}});
}

void DistributedMutex::start_async(AcquireOptions options,
                                   std::unique_ptr<internal::HandlerBase> handler) {
  const auto& mutex = impl("acquire_async");
  mutex.client().acquire_async(mutex.name(), options, std::move(handler));
}

AcquireAwaitable DistributedMutex::co_acquire(AcquireOptions options) {
  (void)impl("co_acquire");
  return AcquireAwaitable(std::make_shared<internal::CoAttempt>(impl_, options));
}

std::uint64_t DistributedMutex::token() const {
  if (impl_ == nullptr) {
    throw Error(Errc::not_held, "token: this DistributedMutex was moved from and holds nothing");
  }
  if (impl_->client().forked()) throw impl_->client().gone_error("token");
  const auto hold = impl_->client().thread_hold(impl_->name());
  if (hold == nullptr) {
    throw Error(Errc::not_held, "token of \"" + name() + "\": this thread does not hold it");
  }
  return hold->token();
}

bool DistributedMutex::valid() const noexcept {
  if (impl_ == nullptr || impl_->client().forked()) return false;
  const auto hold = impl_->client().thread_hold(impl_->name());
  return hold != nullptr && hold->valid();
}

std::stop_token DistributedMutex::lost_token() const {
  if (impl_ == nullptr) {
    throw Error(Errc::not_held,
                "lost_token: this DistributedMutex was moved from and holds nothing");
  }
  if (impl_->client().forked()) throw impl_->client().gone_error("lost_token");
  const auto hold = impl_->client().thread_hold(impl_->name());
  if (hold == nullptr) {
    throw Error(Errc::not_held, "lost_token of \"" + name() + "\": this thread does not hold it");
  }
  return hold->lost_token();
}

const std::string& DistributedMutex::name() const noexcept {
  static const std::string kMovedFrom;
  return impl_ == nullptr ? kMovedFrom : impl_->name().text();
}

}  // namespace baton
