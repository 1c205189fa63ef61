// Whether this build is slow, so that tests can do fewer rounds.
#pragma once

namespace baton::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#else
inline constexpr bool kAddressSanitizer = false;
#endif

constexpr bool sanitized() { return kThreadSanitizer || kAddressSanitizer; }

#ifdef BATON_TEST_COUNTED
inline constexpr bool kCounted = true;  // this build counts lines (coverage) and is not optimised
#else
inline constexpr bool kCounted = false;
#endif

// The number of rounds: all, or a tenth with a sanitizer or when lines are counted.
constexpr int scaled(int full) { return sanitized() || kCounted ? (full + 9) / 10 : full; }

}  // namespace baton::test
