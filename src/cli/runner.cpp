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
#include "process_group.h"
#include "text.h"

namespace baton::cli {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMostGrace{5'000};              // unless --grace says more
constexpr milliseconds kLongestGrace{24 * 3'600'000};  // fits the message to the guardian
constexpr milliseconds kIdleTick{1'000};  // a second look, should the loss signal be late
constexpr milliseconds kPatience{2'000};  // for a guardian that somebody has stopped
constexpr milliseconds kKillMargin{250};

milliseconds choose_grace(const Args& args, milliseconds timeout, bool has_lease) {
  const milliseconds grace = args.grace ? *args.grace : std::min(timeout / 4, kMostGrace);
  if (!has_lease) return std::min(grace, kLongestGrace);
  // Less would leave no time to send KILL before the deadline; more than a third would end jobs
  // between two heartbeats that are both in time.
  return std::clamp(grace, std::min<milliseconds>(2 * kKillMargin, timeout / 4), timeout / 3);
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
  const milliseconds timeout = client_.session().timeout;
  has_lease_ = timeout != milliseconds::max();
  grace_ = choose_grace(args_, timeout, has_lease_);
  tick_ = has_lease_ ? std::clamp(timeout / 40, milliseconds(25), milliseconds(250)) : kIdleTick;
}

int Runner::run() {
  const std::stop_callback on_loss(lock_.lost_token(), [this] { lost_bell_.ring(); });
  start_job();
  while (!exit_code_) {
    pollfd fds[] = {
        {guardian_.link.fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}, {lost_bell_.fd(), POLLIN, 0}};
    poll(fds, 3, static_cast<int>(tick_.count()));
    if (fds[2].revents != 0) lost_bell_.hush();
    read_guardian();
    // Not after the end: the group's number may be a stranger's by then.
    while (!exit_code_) {
      const int signal = signals_.next();
      if (signal == 0) break;
      handle_signal(signal);
    }
    if (!exit_code_) check_lock();
  }
  terminal_.take_back(group_, killed_);
  // Before the lock: nothing is left to guard, and its copy of the liveness descriptor must go.
  guardian_.dismiss();
  release(*exit_code_);
  return *exit_code_;
}

void Runner::start_job() {
  const int liveness = client_.session().liveness_fd;
  if (has_lease_) send_deadline();
  const Message start{Note::start, static_cast<std::int32_t>(grace_.count()),
                      static_cast<std::int64_t>(lock_.token())};
  if (!guardian_.link.send(start, liveness)) guardian_died();
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
      if (lock_.valid()) guardian_.link.send({Note::go, 0, 0});
      break;
    case Note::failed:
      exit_code_ = kOsError;
      break;
    case Note::stopped:
      handle_stop(message.number);
      break;
    case Note::exited:
      if (give_up_at_ || !lock_.valid()) break;  // the rest of the group has to be ended
      exit_code_ = message.value != 0 ? exec_failed(static_cast<int>(message.value))
                                      : static_cast<int>(message.number);
      break;
    case Note::killed:
      killed_ = true;
      if (!give_up_at_ && lock_.valid()) exit_code_ = kSignalBase + message.number;
      break;
    case Note::ending:
      lost("run: \"" + lock_.name() + "\" is in danger: no word from the store for too long; " +
           "ending the command before the lock can go to somebody else");
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
    kill(-group_, signal);  // its leader is not reaped before bye: the number is CMD's
  }
}

// CMD was stopped, by Ctrl-Z or because it wants a terminal that is not in its foreground.
void Runner::handle_stop(int signal) {
  if (!terminal_.exists() || give_up_at_) return;
  if ((signal == SIGTTIN || signal == SIGTTOU) && terminal_.is_in_foreground()) {
    wants_terminal_ = true;
    resume_job();
    return;
  }
  terminal_.take_back(group_, false);
  // When somebody continues us, CONT waits in signals_ and resumes CMD, if the lock is still ours.
  if (!stop_self() && signal == SIGTSTP) resume_job();
}

void Runner::resume_job() {
  if (!lock_.valid()) return;  // check_lock() ends it instead
  if (wants_terminal_ && terminal_.is_in_foreground()) terminal_.give(group_);
  kill(-group_, SIGCONT);
}

void Runner::check_lock() {
  if (!give_up_at_ && !lock_.valid()) {
    guardian_.link.send({Note::end, 0, 0});  // first of all: telling it may fail
    const std::error_code reason = lock_.lost_reason();
    lost("run: \"" + lock_.name() + "\" was lost" + (reason ? ": " + reason.message() : "") +
         "; ending the command");
  }
  if (has_lease_ && !give_up_at_) send_deadline();
  if (!give_up_at_ || BootClock::now() < *give_up_at_) return;
  // The guardian does not answer: somebody has stopped it. CMD must not go on for that.
  if (group_ != 0) kill(-group_, SIGKILL);
  if (group_ == 0 || has_living_member(group_) == Living::no) exit_code_ = kLockLost;
}

void Runner::send_deadline() {
  const auto now = BootClock::now();  // before valid_for(): a pause in between must shorten it
  const auto left = std::min(lock_.valid_for(), milliseconds(std::chrono::hours(24)));
  const auto deadline = now + left;
  guardian_.link.send({Note::deadline, 0, deadline.time_since_epoch().count()});
}

void Runner::lost(const std::string& why) {
  if (give_up_at_) return;
  say(why);
  killed_ = true;
  give_up_at_ = BootClock::now() + grace_ + kPatience;
  tick_ = std::min(tick_, milliseconds(100));
}

void Runner::guardian_died() {
  guarded_ = false;
  killed_ = true;
  guardian_.bury();  // now CMD is our child, and its number cannot be taken by others
  if (group_ != 0) {
    const auto now = BootClock::now();
    auto kill_at = now + std::min<BootClock::duration>(grace_, kMostGrace);
    if (has_lease_) kill_at = std::min(kill_at, now + lock_.valid_for() - kKillMargin);
    GroupEnder(group_, kill_at).finish();
  }
  say("run: the guardian process was killed; the command was ended, because nobody could end it " +
      std::string("if baton were killed too"));
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
      if (!give_up_at_) say(error.what());
      exit_code = kLockLost;
    } else {
      say(std::string("warning: ") + error.what());
    }
  }
  client_.close();
}

}  // namespace baton::cli
