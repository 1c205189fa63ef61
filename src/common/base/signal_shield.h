// SignalShield: blocks all signals on threads of baton, because signals belong to the program.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace baton::internal {

// While it lives, all signals are blocked on this thread and on every thread that it starts.
class SignalShield {
 public:
  SignalShield() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalShield() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalShield(const SignalShield&) = delete;
  SignalShield& operator=(const SignalShield&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace baton::internal
