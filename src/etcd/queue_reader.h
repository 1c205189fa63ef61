// QueueReader: reads the queues in which tickets of this client wait, and watches predecessors.
#pragma once

#include "etcd/lock_sequencer.h"
#include "etcd/own_tickets.h"
#include "etcd/lock_reads.h"
#include "etcd/session_context.h"
#include "etcd/watches.h"

#include "common/seam/session.h"

#include <cstdint>
#include <optional>
#include <string>

namespace baton::etcd {

class QueueReader {
 public:
  QueueReader(const SessionContext& context, const OwnTickets& tickets, LockSequencer& sequencer,
              Watches& watches)
      : context_(context),
        tickets_(tickets),
        sequencer_(sequencer),
        watches_(watches),
        reads_(make_lock_reads(context.loop, context.link)) {}

  // As internal::Session::look and peek.
  void look(Nonce nonce, const LookHint& hint, Answer<Standing> answer);
  void peek(const LockName& name, Answer<bool> busy);
  // Reads from the whole cluster. newest: as in LockReads.
  void look_at_all(const OwnTicketPtr& ticket, std::int64_t newest, Answer<Standing> answer);
  // Answers where the ticket stands in this reading, or reads again if the reading is not enough.
  void deliver(const OwnTicketPtr& ticket, const etcdpb::RangeResponse& reading,
               std::int64_t revision, Answer<Standing> answer);
  // Watches the key of a predecessor. want: its key and create revision.
  WatchId watch(Watches::Want want, const std::optional<Nonce>& waiter, WatchHandler handler);

 private:
  void look_pinned(const OwnTicketPtr& ticket, const LookHint& hint, Answer<Standing> answer);
  void peek_now(const std::string& where, Answer<bool> busy);

  const SessionContext& context_;
  const OwnTickets& tickets_;
  LockSequencer& sequencer_;
  Watches& watches_;
  LockReads reads_;
};

}  // namespace baton::etcd
