// Any duration or time point as a timeout in milliseconds, without overflow. Internal: no program
// includes this.
#pragma once

#include <chrono>

namespace baton::internal {

// Rounds up to milliseconds. Too long: milliseconds::max(). Too negative, or not a number: -1 ms.
template <class R, class P>
std::chrono::milliseconds clamp_to_ms(const std::chrono::duration<R, P>& d) {
  using std::chrono::milliseconds;
  using Seconds = std::chrono::duration<long double>;
  const long double limit = static_cast<long double>(milliseconds::max().count()) / 1000.0L;
  const long double length = Seconds(d).count();
  if (length != length) return milliseconds(-1);  // not a number
  if (length >= limit) return milliseconds::max();
  if (length <= -limit) return milliseconds(-1);
  return std::chrono::ceil<milliseconds>(d);
}

// For calls that refuse a negative timeout: rounding up must not turn it into zero.
template <class R, class P>
std::chrono::milliseconds timeout_to_ms(const std::chrono::duration<R, P>& d) {
  if (d < d.zero()) return std::chrono::milliseconds(-1);
  return clamp_to_ms(d);
}

// For try_lock_for(): a negative duration means one attempt, as for std::timed_mutex.
template <class R, class P>
std::chrono::milliseconds wait_to_ms(const std::chrono::duration<R, P>& d) {
  const auto ms = clamp_to_ms(d);
  return ms.count() < 0 ? std::chrono::milliseconds(0) : ms;
}

// For try_lock_until(): the time from now to `t`; 0 if `t` has passed. The difference is taken in
// long double because time points at opposite ends of a clock would overflow its own type.
template <class C, class D>
std::chrono::milliseconds wait_until_to_ms(const std::chrono::time_point<C, D>& t) {
  const auto now = C::now();
  if (t <= now) return std::chrono::milliseconds(0);
  using Seconds = std::chrono::duration<long double>;
  return wait_to_ms(Seconds(t.time_since_epoch()) - Seconds(now.time_since_epoch()));
}

}  // namespace baton::internal
