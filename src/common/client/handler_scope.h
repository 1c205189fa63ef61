// HandlerScope: marks this thread while it runs a handler of the program or resumes a coroutine.
#pragma once

namespace baton::internal {

// A hold taken by lock() belongs to its thread, but handlers and coroutines share threads. Inside a
// handler, lock() would re-enter the hold of another handler, and both would hold the lock. The
// mark is not bound to a client, because handlers of all clients may share an executor.
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
  // The depth of this thread. In a child that was forked inside a handler it starts at 0: there the
  // thread belongs to the child's own program.
  static int& depth() noexcept;  // defined in async.cpp, once for the program
};

}  // namespace baton::internal
