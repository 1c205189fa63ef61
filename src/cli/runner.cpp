#include "runner.h"

#include <baton/error.h>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stop_token>
#include <system_error>
#include <utility>

#include "errors.h"
#include "liveness_copy.h"
#include "process_group.h"
#include "text.h"

namespace baton::cli {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kIdleTick{1'000};  // check the lock this often, in case lost_token() is late
constexpr milliseconds kEndTick{20};      // while the group is being ended

std::string in_danger(const std::string& lock) {
  return "run: \"" + lock + "\" may be lost soon: the store has not answered for too long; " +
         "ending the command before another client can get the lock";
}

}  // namespace

Runner::Runner(const Args& args, Client& client, Lock lock, Guardian guardian,
               const SignalReader& signals, const Terminal& terminal)
    : args_(args),
      client_(client),
      lock_(std::move(lock)),
      guardian_(std::move(guardian)),
      signals_(signals),
      terminal_(terminal) {
  const milliseconds timeout = ask_session().timeout;
  has_lease_ = timeout != milliseconds::max();
  grace_ = choose_grace(args_.grace, timeout);
  plan_.set_grace(grace_);
  tick_ = has_lease_ ? std::clamp(timeout / 40, milliseconds(25), milliseconds(250)) : kIdleTick;
}

int Runner::run() {
  const std::stop_callback on_loss(lock_.lost_token(), [this] { lost_bell_.ring(); });
  start_job();
  while (!exit_code_) {
    pollfd fds[] = {
        {guardian_.link.fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}, {lost_bell_.fd(), POLLIN, 0}};
    poll(fds, 3, poll_timeout(next_step(), tick_));
    if (fds[2].revents != 0) lost_bell_.hush();
    read_guardian();
    // Send no signals after the end: another group may have the number by then.
    while (!exit_code_) {
      const int signal = signals_.next();
      if (signal == 0) break;
      handle_signal(signal);
    }
    if (!exit_code_) check_lock();
  }
  terminal_.take_back(group_, killed_);
  // The guardian must end before the lock is released, because it has a copy of the liveness
  // descriptor.
  guardian_.dismiss();
  release(*exit_code_);
  return *exit_code_;
}

// Throws Failure without a session, and then CMD is not started: the grace would be unknown and, on
// file://, the descriptor that keeps the lock while the guardian ends CMD.
SessionInfo Runner::ask_session() const {
  const std::string not_run = "run: the command was not started: ";
  SessionInfo session;
  try {
    session = client_.session();
  } catch (const Error& error) {
    throw Failure(exit_code_of(error.errc()), not_run + error.what());
  }
  if (session.backend.empty()) {
    throw Failure(kUnavailable, not_run + "the connection to the store has ended; try again");
  }
  if (session.backend == "file" && session.liveness_fd < 0) {
    throw Failure(kUnavailable,
                  not_run + session.endpoint + " has no descriptor that keeps the lock; try again");
  }
  return session;
}

void Runner::start_job() {
  const SessionInfo session = ask_session();
  if (session.liveness_fd >= 0) liveness_ = copy_liveness(session.liveness_fd);
  if (has_lease_) send_deadline();
  const Message start{Note::start, static_cast<std::int32_t>(grace_.count()),
                      static_cast<std::int64_t>(lock_.token())};
  if (!guardian_.link.send(start, liveness_.get())) guardian_died();
}

void Runner::read_guardian() {
  Message message;
  while (guarded_) {
    switch (guardian_.link.receive(message)) {
      case Link::Got::message:
        handle(message);
        break;
      case Link::Got::nothing:
        return;
      case Link::Got::closed:
        if (!exit_code_) guardian_died();
        return;
    }
  }
}

void Runner::handle(const Message& message) {
  switch (message.note) {
    case Note::started:
      group_ = message.number;
      wants_terminal_ = terminal_.is_all_ours();
      if (wants_terminal_) terminal_.give(group_);
      for (const int signal : std::exchange(early_, {})) handle_signal(signal);
      if (lock_.valid() && !plan_.begun()) guardian_.link.send({Note::go, 0, 0});
      break;
    case Note::failed:
      exit_code_ = kOsError;
      break;
    case Note::stopped:
      handle_stop(message.number);
      break;
    case Note::exited:
      if (plan_.begun() || !lock_.valid()) break;  // the rest of the group must be ended first
      exit_code_ = message.value != 0 ? exec_failed(static_cast<int>(message.value))
                                      : static_cast<int>(message.number);
      break;
    case Note::killed:
      killed_ = true;
      if (!plan_.begun() && lock_.valid()) exit_code_ = kSignalBase + message.number;
      break;
    case Note::ending:
      termed_ = true;
      if (!plan_.begun()) begin_end(in_danger(lock_.name()));
      break;
    case Note::gone:
      killed_ = true;
      exit_code_ = kLockLost;
      break;
    default:
      break;
  }
}

void Runner::handle_signal(int signal) {
  if (group_ == 0) {
    early_.push_back(signal);
  } else if (signal == SIGCONT) {
    resume_job();
  } else {
    kill(-group_, signal);  // the leader is not reaped before bye, so the number is still CMD's
  }
}

// CMD was stopped, by Ctrl-Z or because it used the terminal while in the background.
void Runner::handle_stop(int signal) {
  if (!terminal_.exists() || plan_.begun()) return;
  if ((signal == SIGTTIN || signal == SIGTTOU) && terminal_.is_in_foreground()) {
    wants_terminal_ = true;
    resume_job();
    return;
  }
  terminal_.take_back(group_, false);
  // When baton is continued, CONT waits in signals_ and resumes CMD if the lock is still valid.
  if (!stop_self() && signal == SIGTSTP) resume_job();
}

void Runner::resume_job() {
  if (!lock_.valid()) return;  // check_lock() ends CMD instead
  if (wants_terminal_ && terminal_.is_in_foreground()) terminal_.give(group_);
  kill(-group_, SIGCONT);
}

void Runner::check_lock() {
  if (!plan_.begun() && !lock_.valid()) {
    guardian_.link.send({Note::end, 0, 0});  // before the message, which may fail
    const std::error_code reason = lock_.lost_reason();
    begin_end("run: \"" + lock_.name() + "\" was lost" + (reason ? ": " + reason.message() : "") +
              "; ending the command");
  }
  if (has_lease_ && !plan_.begun()) {
    send_deadline();
    if (BootClock::now() >= plan_.term_at()) begin_end(in_danger(lock_.name()));
  }
  if (plan_.begun()) end_job();
}

void Runner::send_deadline() {
  // Read the clock before valid_for(): a pause between the two must make the deadline earlier.
  const auto now = BootClock::now();
  const auto left = std::min(lock_.valid_for(), milliseconds(std::chrono::hours(24)));
  const auto deadline = now + left;
  plan_.renew(deadline);
  guardian_.link.send({Note::deadline, 0, deadline.time_since_epoch().count()});
}

void Runner::begin_end(const std::string& why) {
  plan_.begin(BootClock::now());
  killed_ = true;
  tick_ = std::min(tick_, kEndTick);
  say(why);
}

// The guardian does the same and is usually first. But it may be stopped, and CMD must end even
// then.
void Runner::end_job() {
  const auto now = BootClock::now();
  if (group_ != 0 && !termed_ && now >= plan_.own_term_at()) {
    termed_ = true;
    kill(-group_, SIGTERM);
    kill(-group_, SIGCONT);
  }
  if (now < plan_.kill_at()) return;
  read_guardian();  // it may have reaped the leader: then the number is no longer CMD's
  if (exit_code_) return;
  if (group_ != 0) kill(-group_, SIGKILL);
  killed_group_ = true;
  if (group_ == 0 || has_living_member(group_) == Living::no) {
    exit_code_ = kLockLost;
  } else if (now >= plan_.give_up_at()) {
    kill(guardian_.pid(), SIGKILL);  // CMD becomes our child, and guardian_died() waits for it
  }
}

BootClock::time_point Runner::next_step() const {
  if (!plan_.begun()) return plan_.term_at();
  if (killed_group_) return BootClock::time_point::max();
  return termed_ ? plan_.kill_at() : std::min(plan_.own_term_at(), plan_.kill_at());
}

void Runner::guardian_died() {
  guarded_ = false;
  killed_ = true;
  guardian_.bury();  // from here on CMD is our child, so no other process can get its number
  const bool by_surprise = !plan_.begun();
  if (group_ != 0) {
    if (has_lease_ && by_surprise) send_deadline();
    plan_.begin(BootClock::now(), std::min(grace_, kMostGrace));
    GroupEnder(group_, plan_.kill_at()).finish();
  }
  if (by_surprise) {
    say("run: the guardian process was killed; the command was ended, because no process would "
        "end it if baton were killed too");
  }
  exit_code_ = kLockLost;
}

int Runner::exec_failed(int error_number) const {
  say("run: cannot run " + args_.job[0] + ": " + std::generic_category().message(error_number));
  return error_number == ENOENT || error_number == ENOTDIR ? kNotFound : kCannotExec;
}

void Runner::release(int& exit_code) {
  try {
    lock_.release();
  } catch (const Error& error) {
    if (error.errc() == Errc::lock_lost) {
      if (!plan_.begun()) say(error.what());
      exit_code = kLockLost;
    } else {
      say(std::string("warning: ") + error.what());
    }
  }
  client_.close();
  let_lock_go(liveness_);
}

}  // namespace baton::cli
