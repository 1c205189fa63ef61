// HandlerScope: marks this thread while it runs a handler of the program, or resumes a coroutine.
#pragma once

namespace baton::internal {

// A hold taken by lock() belongs to its thread. Handlers and coroutines share threads: inside one,
// lock() would re-enter the hold of another one, and both would be inside. The mark is not bound to
// a client: handlers of all clients may share one executor.
class HandlerScope {
 public:
  HandlerScope() noexcept { ++depth(); }
  ~HandlerScope() {
    if (int& inside = depth(); inside > 0) --inside;
  }
  HandlerScope(const HandlerScope&) = delete;
  HandlerScope& operator=(const HandlerScope&) = delete;
  static bool inside() noexcept { return depth() > 0; }

 private:
  // Of this thread. A fork made inside a handler begins at 0: its thread is a program of its own.
  static int& depth() noexcept;  // in async.cpp, once in the program
};

}  // namespace baton::internal
