// OperatorCalls: reads one lock (inspect, verify) and removes an entry of any client (evict). Lost
// answers are requested again until the caller stops waiting (`until`; kNever: it has no deadline).
#pragma once

#include "zk/own_ticket.h"
#include "zk/questions.h"

#include <memory>
#include <string_view>

namespace baton::zk {

class OperatorCalls {
 public:
  OperatorCalls(const SessionContext& context, Questions& questions)
      : context_(context), questions_(questions) {}
  OperatorCalls(const OperatorCalls&) = delete;
  OperatorCalls& operator=(const OperatorCalls&) = delete;

  void inspect(const LockName& name, Time until, Answer<LockSnapshot> answer);
  // Whether the ticket, whose node is known, is the first one of its queue.
  void verify(OwnTicketPtr ticket, Time until, Answer<bool> answer);
  void evict(const LockName& name, std::string_view entry_id, Time until, Answer<bool> answer);

 private:
  struct Reading;
  struct Proof;
  struct Eviction;
  void read_line(const std::shared_ptr<Reading>& reading);
  void read_entries(const std::shared_ptr<Reading>& reading);
  void prove(const std::shared_ptr<Proof>& proof);
  void try_evict(const std::shared_ptr<Eviction>& eviction);

  const SessionContext& context_;
  Questions& questions_;
};

}  // namespace baton::zk
