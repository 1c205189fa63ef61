// KeyLife: puts the keys of this client's tickets, and removes them.
#pragma once

#include "etcd/leases.h"
#include "etcd/lock_sequencer.h"
#include "etcd/own_tickets.h"
#include "etcd/queue_reader.h"
#include "etcd/session_context.h"
#include "etcd/stray_keys.h"
#include "etcd/watches.h"

#include "common/seam/session.h"

#include <functional>
#include <string>

namespace baton::etcd {

class KeyLife {
 public:
  // The lease of a key was gone when the key was put: the session is over.
  using LeaseGone = std::function<void(const std::string& detail)>;

  KeyLife(const SessionContext& context, OwnTickets& tickets, LockSequencer& sequencer,
          Leases& leases, Watches& watches, QueueReader& reader, StrayKeys& stray_keys,
          LeaseGone lease_gone);

  // As internal::Session::join and withdraw.
  void join(const LockName& name, Nonce nonce, Answer<Standing> answer);
  void withdraw(Nonce nonce, Answer<WithdrawResult> answer);

 private:
  void enter(const OwnTicketPtr& ticket, Answer<Standing> answer);
  void send_join(const OwnTicketPtr& ticket, LockSequencer::Turn turn, Answer<Standing> answer);
  void entered(const OwnTicketPtr& ticket, Reply<etcdpb::TxnResponse>& reply,
               Answer<Standing> answer);
  void take_other_key(const OwnTicketPtr& ticket, const etcdpb::KeyValue& found,
                      LockSequencer::Turn turn, Answer<Standing> answer);
  void not_entered(const OwnTicketPtr& ticket, const Reply<etcdpb::TxnResponse>& reply,
                   Answer<Standing> answer);
  void remove(const OwnTicketPtr& ticket, Answer<WithdrawResult> answer);
  void flush_withdrawals(const OwnTicketPtr& ticket);

  const SessionContext& context_;
  OwnTickets& tickets_;
  LockSequencer& sequencer_;
  Leases& leases_;
  Watches& watches_;
  QueueReader& reader_;
  StrayKeys& stray_keys_;
  const LeaseGone lease_gone_;
};

}  // namespace baton::etcd
