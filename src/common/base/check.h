// BATON_ASSERT: checks an invariant of baton's own code, in builds with the option BATON_CHECKS.
// Never use it for input: a server, a file or a caller may send anything.
// Not assert(): packagers build without NDEBUG, and a program must not end because of a check.
#pragma once

namespace baton::internal {

struct BrokenInvariant {
  const char* condition;
  const char* file;
  int line;
};
using CheckHandler = void (*)(const BrokenInvariant& broken);

// Sets what happens when an invariant is broken, and returns the previous handler. The first
// handler writes a line to stderr and ends the program. A handler that returns lets the code
// continue. From any thread.
CheckHandler set_check_handler(CheckHandler handler) noexcept;

// Calls the handler.
void invariant_broken(const BrokenInvariant& broken);

}  // namespace baton::internal

#ifdef BATON_CHECKS
#define BATON_ASSERT(condition) \
  (static_cast<bool>(condition) \
       ? static_cast<void>(0)   \
       : ::baton::internal::invariant_broken({#condition, __FILE__, __LINE__}))
#else
// Compiled, but not evaluated.
#define BATON_ASSERT(condition) static_cast<void>(sizeof(static_cast<bool>(condition)))
#endif
