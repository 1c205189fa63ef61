// How much slower this build runs, so that loops can be scaled.
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
inline constexpr bool kCounted = true;  // lines are counted, and nothing is optimised
#else
inline constexpr bool kCounted = false;
#endif

// A number of rounds: all of them, or a tenth under a sanitizer, or where lines are counted.
constexpr int scaled(int full) { return sanitized() || kCounted ? (full + 9) / 10 : full; }

}  // namespace baton::test
