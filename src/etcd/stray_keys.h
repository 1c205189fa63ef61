// StrayKeys: removes keys of this client that have no ticket any more.
#pragma once

#include "etcd/leases.h"
#include "etcd/own_tickets.h"
#include "etcd/session_context.h"
#include "etcd/watches.h"

#include <cstdint>
#include <map>
#include <string>

namespace baton::etcd {

class StrayKeys {
 public:
  StrayKeys(const SessionContext& context, Leases& leases, Watches& watches,
            const OwnTickets& tickets);
  ~StrayKeys();
  StrayKeys(const StrayKeys&) = delete;
  StrayKeys& operator=(const StrayKeys&) = delete;

  // Starts to ask regularly for the keys of the leases; stop() ends that.
  void start() { sweep_later(); }
  void stop();
  // The ticket was removed at this revision, but a late transaction may still create its key.
  void abandon(const OwnTicket& ticket, std::int64_t revision);
  // Removes the key with this create revision. Retried until the server has answered.
  void remove_stray(const std::string& key, std::int64_t created);
  void lease_revoked(std::int64_t lease);

 private:
  // A key of an abandoned ticket, which a late transaction may still create.
  struct Abandoned {
    std::int64_t lease = 0;
    WatchId watch = WatchId::none;
  };

  void sweep_later();
  void sweep();
  void swept(std::int64_t lease, const etcdpb::LeaseTimeToLiveResponse& answer);
  void remove_unwanted(const std::string& key, std::int64_t lease);

  const SessionContext& context_;
  Leases& leases_;
  Watches& watches_;
  const OwnTickets& tickets_;
  std::map<std::string, Abandoned> abandoned_;  // by key
  TimerId sweep_timer_ = TimerId::none;
  Time sweep_at_{};
};

}  // namespace baton::etcd
