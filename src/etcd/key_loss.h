// KeyLoss: watches the keys of this client's own tickets, and finds out what a loss means.
#pragma once

#include "etcd/own_tickets.h"
#include "etcd/session_context.h"
#include "etcd/watches.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace baton::etcd {

class KeyLoss {
 public:
  // The store has ended the lease of a ticket that the client still needs: the session is over.
  using LeaseGone = std::function<void(const std::string& detail)>;

  KeyLoss(const SessionContext& context, Watches& watches, const OwnTickets& tickets,
          LeaseGone lease_gone);
  ~KeyLoss();
  KeyLoss(const KeyLoss&) = delete;
  KeyLoss& operator=(const KeyLoss&) = delete;

  // Watches the key of the ticket with this nonce. want: its key and create revision.
  WatchId watch(Watches::Want want, Nonce nonce, WatchHandler handler);

 private:
  // Keys of one lease that are gone, while the session asks whether the lease is gone as well.
  struct Pending {
    std::vector<std::pair<OwnTicketPtr, WatchHandler>> tickets;
    std::uint64_t question = 0;  // answers to earlier questions are ignored
    TimerId timer = TimerId::none;
  };

  void key_gone(const OwnTicketPtr& ticket, WatchHandler handler);
  void answered(std::int64_t lease, std::uint64_t question, bool lease_gone);

  const SessionContext& context_;
  Watches& watches_;
  const OwnTickets& tickets_;
  const LeaseGone lease_gone_;
  std::map<std::int64_t, Pending> pending_;  // by lease
  std::uint64_t questions_ = 0;
};

}  // namespace baton::etcd
