#include "job.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "errors.h"
#include "held.h"
#include "liveness_copy.h"

namespace baton::cli {

namespace {

[[noreturn]] void become_job(const JobSpec& spec, const SignalState& signals, pid_t guardian,
                             Pipe& go, Pipe& error) {
  setpgid(0, 0);
  // If guardian and baton are both killed, the kernel kills the leader, so that it does not
  // continue without the lock. The processes that the leader started continue; on file:// their
  // copies of the liveness descriptor keep the lock.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guardian) _exit(kNotFound);
  go.write.reset();  // else read() would never see the end of file
  signals.restore();
  char word = 0;
  ssize_t n = 0;
  do {
    n = read(go.read.get(), &word, 1);
  } while (n < 0 && errno == EINTR);
  if (n != 1) _exit(kNotFound);

  std::vector<char*> argv;
  for (const std::string& word_of_job : spec.argv) {
    argv.push_back(const_cast<char*>(word_of_job.c_str()));
  }
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  const int why = errno;
  [[maybe_unused]] const ssize_t told = write(error.write.get(), &why, sizeof why);
  _exit(kNotFound);
}

}  // namespace

Job::Job(const JobSpec& spec, const SignalState& signals, std::uint64_t token, int liveness) {
  setenv("BATON_LOCK", spec.lock.c_str(), 1);
  setenv("BATON_TOKEN", std::to_string(token).c_str(), 1);
  add_held({spec.lock, token, spec.store});

  Pipe go = make_pipe();
  Pipe error = make_pipe();
  const Fd inherited = liveness >= 0 ? copy_liveness_for_job(liveness) : Fd();
  const pid_t guardian = getpid();
  // Block all signals across fork(): the guardian ignores them, and the child inherits that.
  // Without the block, a TERM that arrives before the child restores its dispositions would be
  // lost.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  pid_ = fork();
  const int why = errno;
  if (pid_ == 0) become_job(spec, signals, guardian, go, error);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid_ < 0) throw os_failure("run: cannot start a process", why);
  setpgid(pid_, pid_);  // parent and child both do it, so it is done whichever runs first
  go_ = std::move(go.write);
  exec_error_ = std::move(error.read);
  fcntl(exec_error_.get(), F_SETFL, O_NONBLOCK);
}

void Job::go() noexcept {
  [[maybe_unused]] const ssize_t n = write(go_.get(), "!", 1);
  go_.reset();
}

int Job::exec_error() const noexcept {
  int why = 0;
  const ssize_t n = read(exec_error_.get(), &why, sizeof why);
  return n == static_cast<ssize_t>(sizeof why) ? why : 0;
}

}  // namespace baton::cli
