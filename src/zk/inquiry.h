// Inquiry: one question of an operator or a holder, which may take several requests. It ends with
// its caller: what was not sent by then is not sent.
#pragma once

#include "common/base/loop.h"
#include "zk/outbox.h"

#include <cstdint>
#include <memory>
#include <set>

namespace baton::zk {

// On the strand. Requests keep it alive.
class Inquiry : public std::enable_shared_from_this<Inquiry> {
 public:
  // late: tells the caller that the time is over; called once, unless finish() came before, and
  // never inside a call of this class.
  static std::shared_ptr<Inquiry> begin(Loop& loop, Outbox& outbox, Time until, Task late);
  Inquiry(Loop& loop, Outbox& outbox, Time until) : loop_(loop), outbox_(outbox), until_(until) {}
  ~Inquiry();
  Inquiry(const Inquiry&) = delete;
  Inquiry& operator=(const Inquiry&) = delete;

  // Not sent after the end, and not answered after it.
  void ask(Request request, Outbox::Answer answer);
  // The caller waits no longer: it has been answered, or is about to be. True: the first time.
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
  std::set<std::uint64_t> asked_;  // and not answered
};

}  // namespace baton::zk
