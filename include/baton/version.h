// Version of baton, and a check of the platform: Linux, C++20, libstdc++, and g++ 12 or clang 14 or
// later. On another platform the compiler stops here and says what is missing.
#pragma once

// The version of these headers.
#define BATON_VERSION_MAJOR 0
#define BATON_VERSION_MINOR 1
#define BATON_VERSION_PATCH 0
#define BATON_VERSION_STRING "0.1.0"

#if !defined(__linux__)
#error "baton runs on Linux only: it relies on CLOCK_BOOTTIME, OFD locks and inotify"
#endif

#if defined(__clang__)
#if __clang_major__ < 14
#error "baton needs clang 14 or later (or g++ 12 or later)"
#endif
#elif defined(__GNUC__)
#if __GNUC__ < 12
#error "baton needs g++ 12 or later (or clang 14 or later)"
#endif
#endif

#if __cplusplus < 202002L
#error "baton needs C++20: compile with -std=c++20 or later"
#endif

#include <version>

#if !defined(__GLIBCXX__)
#error "baton needs libstdc++ (GNU C++ library): libc++ 14 has no std::stop_token"
#endif

// Marks the symbols that the shared library exports. All others are hidden.
#define BATON_API [[gnu::visibility("default")]]
