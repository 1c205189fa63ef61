#include "common/client/backstop.h"

#include <chrono>
#include <random>
#include <utility>

namespace baton::internal {

Backstop::Backstop(EngineContext& context, LookOfWaiter look_of_waiter, LookOfHold look_of_hold)
    : context_(context),
      look_of_waiter_(std::move(look_of_waiter)),
      look_of_hold_(std::move(look_of_hold)) {}

void Backstop::add_waiter(const std::shared_ptr<Attempt>& attempt, std::uint64_t rank) {
  remove_waiter(attempt);
  attempt->rank = rank;
  Group& group = groups_[attempt->name];
  group.waiting.emplace(std::pair(rank, attempt->id), attempt);
  arm(attempt->name, group);
}

void Backstop::remove_waiter(const std::shared_ptr<Attempt>& attempt) {
  if (attempt->rank == 0) return;
  const auto group = groups_.find(attempt->name);
  if (group != groups_.end()) {
    group->second.waiting.erase(std::pair(attempt->rank, attempt->id));
    drop_empty_group(attempt->name);
  }
  attempt->rank = 0;
}

void Backstop::add_hold(const LockName& name, Nonce nonce) { groups_[name].holds.push_back(nonce); }

void Backstop::remove_hold(const LockName& name, Nonce nonce) {
  const auto group = groups_.find(name);
  if (group == groups_.end()) return;
  std::erase(group->second.holds, nonce);
  drop_empty_group(name);
}

void Backstop::rearm(const LockName& name) {
  const auto group = groups_.find(name);
  if (group == groups_.end()) return;
  arm(name, group->second);
  drop_empty_group(name);
}

void Backstop::drop_empty_group(const LockName& name) {
  const auto group = groups_.find(name);
  if (group == groups_.end() || !group->second.empty()) return;
  context_.loop.cancel(group->second.timer);
  groups_.erase(group);
}

void Backstop::arm(const LockName& name, Group& group) {
  if (context_.session == nullptr || group.empty() || group.timer != TimerId::none) return;
  const auto period = std::chrono::duration_cast<Nanos>(context_.session->backstop());
  std::uniform_int_distribution<std::int64_t> jitter(period.count() / 4 * 3, period.count());
  group.timer = context_.loop.at(context_.loop.now() + Nanos(jitter(context_.random)),
                                 [this, name] { run(name); });
}

void Backstop::run(const LockName& name) {
  auto group = groups_.find(name);
  if (group == groups_.end()) return;
  group->second.timer = TimerId::none;
  if (context_.session == nullptr) return;
  // The first waiter is enough: all other waiters of this client are behind it.
  if (!group->second.waiting.empty()) {
    const auto first = group->second.waiting.begin()->second;
    look_of_waiter_(first);
  }
  group = groups_.find(name);  // again after each look, which may have changed the groups
  if (group == groups_.end()) return;
  const auto holds = group->second.holds;
  for (const Nonce nonce : holds) look_of_hold_(nonce);
  rearm(name);
}

}  // namespace baton::internal
