// Inquiry: one question of an operator or a holder, which may take several requests. It ends when
// its caller stops waiting; requests that were not sent by then are never sent.
#pragma once

#include "common/base/loop.h"
#include "zk/outbox.h"

#include <cstdint>
#include <memory>
#include <set>

namespace baton::zk {

// Use it on the strand. Requests under way keep it alive.
class Inquiry : public std::enable_shared_from_this<Inquiry> {
 public:
  // late: tells the caller that the time is over. Called once at `until`, unless finish() was
  // called before, and never inside a call to this class.
  static std::shared_ptr<Inquiry> begin(Loop& loop, Outbox& outbox, Time until, Task late);
  Inquiry(Loop& loop, Outbox& outbox, Time until) : loop_(loop), outbox_(outbox), until_(until) {}
  ~Inquiry();
  Inquiry(const Inquiry&) = delete;
  Inquiry& operator=(const Inquiry&) = delete;

  // Sends a request. After the end it is neither sent nor answered.
  void ask(Request request, Outbox::Answer answer);
  // Ends the inquiry: the caller has been answered, or is about to be. Returns true at the first
  // call.
  bool finish();
  bool wanted() const noexcept { return !over_ && loop_.now() < until_; }

 private:
  void end();

  Loop& loop_;
  Outbox& outbox_;
  const Time until_;
  Task late_;
  TimerId timer_ = TimerId::none;
  bool over_ = false;
  std::set<std::uint64_t> asked_;  // unanswered requests
};

}  // namespace baton::zk
