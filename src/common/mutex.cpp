#include <baton/mutex.h>

#include "common/async.h"
#include "common/mutex_impl.h"

#include <utility>

namespace baton {

using internal::MutexImpl;
using std::chrono::milliseconds;

DistributedMutex::DistributedMutex(std::shared_ptr<MutexImpl> impl) noexcept
    : impl_(std::move(impl)) {}

void DistributedMutex::lock() { impl_->client().lock_thread(impl_->name(), std::nullopt); }
bool DistributedMutex::try_lock() { return try_lock_ms(milliseconds(0)); }
bool DistributedMutex::try_lock_ms(milliseconds timeout) {
  return impl_->client().lock_thread(impl_->name(), timeout);
}
void DistributedMutex::unlock() noexcept { impl_->client().unlock_thread(impl_->name()); }

Result<Lock> DistributedMutex::acquire_result(AcquireOptions options) noexcept {
  try {
    return impl_->client().acquire(impl_->name(), options, false);
  } catch (const Error& e) {
    return e;
  } catch (const std::exception& e) {
    return Error(Errc::store_error, std::string("acquire: ") + e.what());
  }
}

Lock DistributedMutex::acquire(AcquireOptions options) {
  return impl_->client().acquire(impl_->name(), options, false).value();
}

Lock DistributedMutex::acquire_for(milliseconds timeout) { return acquire({timeout, {}}); }

std::optional<Lock> DistributedMutex::try_acquire(AcquireOptions options) {
  if (!options.timeout) options.timeout = milliseconds(0);
  auto lock = impl_->client().acquire(impl_->name(), options, false);
  if (lock) return std::move(lock).value();
  if (lock.error().errc() == Errc::timeout) return std::nullopt;
  throw lock.error();
}

std::optional<Lock> DistributedMutex::try_acquire_for(milliseconds timeout) {
  return try_acquire({timeout, {}});
}

void DistributedMutex::start_async(AcquireOptions options,
                                   std::unique_ptr<internal::HandlerBase> handler) {
  impl_->client().acquire_async(impl_->name(), options, std::move(handler));
}

AcquireAwaitable DistributedMutex::co_acquire(AcquireOptions options) {
  return AcquireAwaitable(std::make_shared<internal::CoAttempt>(impl_, std::move(options)));
}

std::uint64_t DistributedMutex::token() const {
  if (impl_->client().forked()) throw impl_->client().gone_error("token");
  const auto hold = impl_->client().thread_hold(impl_->name());
  if (hold == nullptr) {
    throw Error(Errc::not_held, "token of \"" + name() + "\": this thread does not hold it");
  }
  return hold->token();
}

bool DistributedMutex::valid() const noexcept {
  if (impl_->client().forked()) return false;
  const auto hold = impl_->client().thread_hold(impl_->name());
  return hold != nullptr && hold->valid();
}

std::stop_token DistributedMutex::lost_token() const {
  if (impl_->client().forked()) throw impl_->client().gone_error("lost_token");
  const auto hold = impl_->client().thread_hold(impl_->name());
  if (hold == nullptr) {
    throw Error(Errc::not_held, "lost_token of \"" + name() + "\": this thread does not hold it");
  }
  return hold->lost_token();
}

const std::string& DistributedMutex::name() const noexcept { return impl_->name().text(); }

}  // namespace baton
