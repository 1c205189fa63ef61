#include "guardian.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <exception>
#include <optional>

#include "clock.h"
#include "ending.h"
#include "errors.h"
#include "liveness_copy.h"
#include "process_group.h"

namespace baton::cli {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestNap{60'000};
// With a lease the guardian reads BootClock this often, because the clock of poll() stops while the
// machine sleeps.
constexpr milliseconds kLeaseNap{100};

class GuardianLoop {
 public:
  GuardianLoop(Link link, const JobSpec& spec, const SignalState& signals, const Terminal& terminal)
      : link_(std::move(link)), spec_(spec), signals_(signals), terminal_(terminal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    child_events_ = Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!child_events_) throw os_failure("run: the guardian cannot receive signals", errno);
  }

  void run() {
    while (!done_) {
      pollfd fds[] = {{link_.fd(), POLLIN, 0}, {child_events_.get(), POLLIN, 0}};
      // Once baton is gone its socket is readable permanently, so poll() must not include it.
      poll(baton_gone_ ? fds + 1 : fds, baton_gone_ ? 1 : 2, timeout());
      if (!baton_gone_) read_messages();
      watch_children();
      watch_deadline();
      if (ender_ && ender_->step()) finish();
    }
  }

 private:
  int timeout() const {
    if (ender_) return poll_timeout(ender_->next_step(), kLeaseNap);
    if (!job_ || exited_ || !plan_.has_deadline()) return static_cast<int>(kLongestNap.count());
    return poll_timeout(plan_.term_at(), kLeaseNap);
  }

  void read_messages() {
    Message message;
    Fd descriptor;
    while (!done_) {
      switch (link_.receive(message, &descriptor)) {
        case Link::Got::nothing:
          return;
        case Link::Got::closed:
          baton_gone_ = true;
          if (job_) {
            end();  // before say(), which may fail
            say("run: baton itself was killed; ending the command before the lock is freed");
          } else {
            let_lock_go(liveness_);
            done_ = true;
          }
          return;
        case Link::Got::message:
          handle(message, std::move(descriptor));
      }
    }
  }

  void handle(const Message& message, Fd descriptor) {
    switch (message.note) {
      case Note::start:
        liveness_ = std::move(descriptor);
        plan_.set_grace(milliseconds(message.number));
        start(static_cast<std::uint64_t>(message.value));
        break;
      case Note::go:
        if (job_) job_->go();
        break;
      case Note::deadline:
        plan_.renew(BootClock::time_point(BootClock::duration(message.value)));
        break;
      case Note::end:
        end();
        break;
      case Note::bye:
        done_ = true;
        break;
      default:
        break;
    }
  }

  void start(std::uint64_t token) {
    try {
      job_.emplace(spec_, signals_, token, liveness_.get());
    } catch (const Failure& failure) {
      say(failure.what());
      link_.send({Note::failed, 0, 0});
      done_ = true;
      return;
    }
    // The guardian must not keep copies of what CMD inherited. Otherwise the reader of a pipe of
    // CMD would not see the end of file when CMD ends.
    redirect_to_null(STDIN_FILENO);
    redirect_to_null(STDOUT_FILENO);
    close_all_but({link_.fd(), child_events_.get(), liveness_.get(), terminal_.fd(),
                   job_->error_fd(), job_->go_fd()});
    link_.send({Note::started, job_->group(), 0});
  }

  void watch_children() {
    signalfd_siginfo info[16];
    while (read(child_events_.get(), info, sizeof info) > 0) {
    }
    if (!job_ || exited_) return;
    siginfo_t event{};
    while (waitid(P_PID, static_cast<id_t>(job_->group()), &event, WSTOPPED | WNOHANG) == 0 &&
           event.si_pid != 0) {
      link_.send({Note::stopped, event.si_status, 0});
      event.si_pid = 0;
    }
    // Never reap the leader here: while it is a zombie, no other process can get its number. After
    // its end orphans are not reaped either, because the guardian itself ends soon.
    for (event.si_pid = 0; !exited_ && ender_ == std::nullopt; event.si_pid = 0) {
      if (waitid(P_ALL, 0, &event, WEXITED | WNOHANG | WNOWAIT) != 0 || event.si_pid == 0) return;
      if (event.si_pid == job_->group()) {
        report_exit(event);
      } else {
        waitid(P_PID, static_cast<id_t>(event.si_pid), &event, WEXITED | WNOHANG);
      }
    }
  }

  void report_exit(const siginfo_t& event) {
    exited_ = true;
    const Note note = event.si_code == CLD_EXITED ? Note::exited : Note::killed;
    link_.send({note, event.si_status, job_->exec_error()});
  }

  void watch_deadline() {
    if (job_ && !ender_ && !exited_ && BootClock::now() >= plan_.term_at()) end();
    if (ender_) ender_->kill_by(plan_.kill_at());
  }

  void end() {
    if (!job_ || ender_) return;
    plan_.begin(BootClock::now());
    ender_.emplace(job_->group(), plan_.kill_at());
    link_.send({Note::ending, 0, 0});
  }

  void finish() {
    if (baton_gone_) {
      terminal_.take_back(job_->group(), true);
      let_lock_go(liveness_);  // baton can no longer release it
    }
    link_.send({Note::gone, 0, 0});
    done_ = baton_gone_;
    ender_.reset();
    job_.reset();
  }

  Link link_;
  const JobSpec& spec_;
  const SignalState& signals_;
  const Terminal& terminal_;
  Fd child_events_;
  Fd liveness_;
  std::optional<Job> job_;
  std::optional<GroupEnder> ender_;
  EndPlan plan_;
  bool exited_ = false;
  bool baton_gone_ = false;
  bool done_ = false;
};

}  // namespace

void Guardian::dismiss() noexcept {
  if (pid_ < 0) return;
  link.send({Note::bye, 0, 0});
  const auto patience = BootClock::now() + kPatience;
  Message message;
  Link::Got got = Link::Got::nothing;
  while (got != Link::Got::closed && BootClock::now() < patience) {
    pollfd fds[] = {{link.fd(), POLLIN, 0}};
    poll(fds, 1, poll_timeout(patience, kPatience));
    got = link.receive(message);
  }
  if (got != Link::Got::closed) kill(pid_, SIGKILL);  // it does not answer and is not needed
  bury();
}

void Guardian::bury() noexcept {
  if (pid_ >= 0) waitpid(std::exchange(pid_, -1), nullptr, 0);
}

Guardian start_guardian(const JobSpec& spec, const SignalState& signals, const Terminal& terminal) {
  LinkPair links = make_links();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t pid = fork();
  if (pid < 0) throw os_failure("run: cannot start the guardian", errno);
  if (pid > 0) return {pid, std::move(links.baton)};
  try {
    // A separate process group, so that signals to baton's group do not reach the guardian. But not
    // a separate session: CMD is its child and has to share baton's terminal.
    setpgid(0, 0);
    ignore_signals();
    prctl(PR_SET_NAME, "guardian");  // not "baton", so that killall baton does not kill both
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    links.baton = Link(Fd());
    GuardianLoop(std::move(links.guardian), spec, signals, terminal).run();
  } catch (const std::exception& error) {
    say(error.what());
  }
  _exit(kOk);  // the kernel closes our copy of the liveness descriptor
}

}  // namespace baton::cli
