// Version of baton, and the platforms it is made for.
#pragma once

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

// Marks what the shared library exports; everything else is hidden.
#define BATON_API [[gnu::visibility("default")]]
