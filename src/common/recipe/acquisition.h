// Acquisition: an attempt to get a lock, as a state machine. An event goes in, the next actions
// come out. Pure: no thread, no clock, no I/O. The Engine drives it, also in the simulator.
#pragma once

#include <baton/error.h>

#include "common/seam/session.h"
#include "common/seam/ticket.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace baton::internal {

// What the driver must do next. If several are set, the driver does them in this order.
struct Actions {
  std::optional<Nonce> withdraw;  // withdraw this ticket, and retry until it is gone
  bool peek = false;              // ask whether the queue has a ticket
  bool join = false;              // join under nonce()
  bool look = false;              // look under nonce()
  LookHint hint;                  // for the look: from the event that caused it
  std::optional<Ticket> watch;    // watch this predecessor (and only it)
  bool pause = false;             // wait a little, then on_pause_over()
  bool grant = false;             // the lock is granted, with token() and sign()
  std::optional<Error> fail;      // the attempt has ended with this error
};

class Acquisition {
 public:
  enum class State {
    no_session,  // waiting for a session
    peeking,     // timeout 0: peek sent
    joining,     // join sent
    looking,     // look sent
    waiting,     // a predecessor is ahead and is watched
    pausing,     // waits before a retry
    done,
  };

  // once: an attempt with timeout 0, which reads before it writes and does not wait.
  explicit Acquisition(bool once) noexcept : once_(once) {}

  // A session was opened, the first or a later one. fresh: a nonce that was never used before.
  Actions on_session(Nonce fresh);
  Actions on_session_ended();
  Actions on_session_resumed();  // events may have been missed

  Actions on_peeked(const Result<bool>& busy);
  // fresh: for joining again if the ticket is gone. lease_ok: the session's deadline is not
  // reached.
  Actions on_joined(const Result<Standing>& standing, Nonce fresh, bool lease_ok);
  Actions on_looked(const Result<Standing>& standing, Nonce fresh, bool lease_ok);
  Actions on_predecessor(const WatchEvent& event, bool lease_ok);
  Actions on_own_ticket();  // an event of the watch on the own ticket: look
  Actions on_backstop();    // the backstop timer has fired: look
  Actions on_pause_over();
  // Timeout, cancel, close. May come while an answer is missing: the ticket is withdrawn by nonce.
  Actions on_give_up(const Error& why);

  State state() const noexcept { return state_; }
  bool done() const noexcept { return state_ == State::done; }
  // Whether a ticket of this attempt is, or may be, in the queue.
  bool has_ticket() const noexcept { return ticket_sent_; }
  Nonce nonce() const noexcept { return nonce_; }
  std::uint64_t token() const noexcept { return token_; }
  std::size_t ahead() const noexcept { return ahead_; }
  const Ticket& own() const noexcept { return own_; }  // valid once joined
  const std::shared_ptr<const TicketSign>& sign() const noexcept { return sign_; }

 private:
  Actions begin(Nonce fresh);
  Actions join_under(Nonce nonce);
  Actions judge_standing(const Standing& standing, Nonce fresh, bool lease_ok);
  Actions finish(Actions actions);
  Actions look_again();

  const bool once_;
  State state_ = State::no_session;
  State retry_ = State::joining;  // what to repeat after a pause
  Nonce nonce_{};
  bool ticket_sent_ = false;
  bool look_again_ = false;  // something happened while a look was under way
  std::uint64_t token_ = 0;
  std::size_t ahead_ = 0;
  Ticket own_;
  std::shared_ptr<const TicketSign> sign_;
};

}  // namespace baton::internal
