// OperatorCalls: inspects, lists and evicts entries of any client, and settles the token base. Lost
// answers are requested again until the caller stops waiting for them.
#pragma once

#include "etcd/lock_sequencer.h"
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
  OperatorCalls(const SessionContext& context, LockSequencer& sequencer)
      : context_(context), sequencer_(sequencer) {}

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
  LockSequencer& sequencer_;
};

}  // namespace baton::etcd
