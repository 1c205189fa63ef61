// Any duration as a timeout in milliseconds, without overflow.
#pragma once

#include <chrono>

namespace baton::internal {

// Converts any duration to milliseconds, up to the next one, without overflow in either direction.
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

// The same for calls that refuse a negative timeout: rounding up must not make it zero.
template <class R, class P>
std::chrono::milliseconds timeout_to_ms(const std::chrono::duration<R, P>& d) {
  if (d < d.zero()) return std::chrono::milliseconds(-1);
  return clamp_to_ms(d);
}

}  // namespace baton::internal
