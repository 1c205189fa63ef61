// OperatorCalls: verifies holds, inspects, lists and evicts entries of any client, and settles the
// token base. Lost answers are requested again until the caller stops waiting for them.
#pragma once

#include "etcd/lock_sequencer.h"
#include "etcd/own_tickets.h"
#include "etcd/queue_reader.h"
#include "etcd/session_context.h"

#include "common/seam/session.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace baton::etcd {

// As the calls of internal::Session with these names. until: how long the caller waits.
class OperatorCalls {
 public:
  OperatorCalls(const SessionContext& context, const OwnTickets& tickets, LockSequencer& sequencer,
                QueueReader& reader)
      : context_(context), tickets_(tickets), sequencer_(sequencer), reader_(reader) {}

  void verify(Time until, Nonce nonce, Answer<bool> answer);
  void inspect(Time until, const LockName& name, Answer<LockSnapshot> answer);
  void list(Time until, std::string_view wanted, Answer<std::vector<std::string>> answer);
  void evict(Time until, const LockName& name, std::string_view entry_id, Answer<bool> answer);
  // token_base.cpp
  void settle_token_base(Time until, std::uint64_t wanted, Answer<std::uint64_t> answer);

 private:
  struct Listing;
  struct Eviction;

  void inspect_now(Time until, const LockName& name, Answer<LockSnapshot> answer);
  void list_on(const std::shared_ptr<Listing>& listing);
  void try_evict(const std::shared_ptr<Eviction>& eviction);
  void record_token_base(Time until, std::uint64_t wanted, Answer<std::uint64_t> answer);

  const SessionContext& context_;
  const OwnTickets& tickets_;
  LockSequencer& sequencer_;
  QueueReader& reader_;
};

}  // namespace baton::etcd
