// The checks after every event and at the end of a run. Unlike the checks of tests/history, they
// compare each hold with the store itself, and they know which entries were evicted or removed by a
// server bug. The first failed check ends the run.
#include "bugs.h"
#include "simulation.h"
#include "simulation_parts.h"

#include <algorithm>

namespace baton::sim {

using namespace std::chrono_literals;
using internal::Hold;

void Simulation::fail(const std::string& what) {
  if (!outcome_.failure.empty()) return;
  outcome_.failure = what;
  world_.note("FAIL " + what);
}

bool Simulation::client_paused(int client) const {
  return std::any_of(slots_.begin(), slots_.end(), [client](const auto& slot) {
    return slot->client != nullptr && slot->client->number() == client && slot->client->paused();
  });
}

// Whether the client believes that it holds the lock.
bool Simulation::believed(const Grant& grant) const {
  if (active_bug == Bug::none) return grant.hold->valid();
  const auto slot = std::find_if(slots_.begin(), slots_.end(), [&grant](const auto& each) {
    return each->client != nullptr && each->client->number() == grant.client;
  });
  return slot == slots_.end() ? grant.hold->valid() : (*slot)->client->believes_in(*grant.hold);
}

void Simulation::granted(int client, const std::shared_ptr<Hold>& hold) {
  ++outcome_.grants;
  world_.note("client " + std::to_string(client) + " holds " + hold->name().text() + " " +
              std::to_string(hold->token()));
  Grant grant{client, hold->name(), hold};
  bool there = false;
  for (const auto& entry : store_->entries(hold->name())) {
    if (entry.token != hold->token()) continue;
    there = true;
    grant.session = entry.session;
  }
  // After a rollback, the backup may not have the entry, or this answer may be older than the
  // rollback. Neither is an error.
  const bool overtaken = rolled_back_ && world_.now() <= *rolled_back_ + timeout_ &&
                         store_->front(hold->name()) != hold->token();
  if (rolled_back_ && (!there || overtaken)) evicted_.insert(hold->token());
  // C2: each grant has a greater token than every earlier grant of the name. A grant may arrive
  // late if its entry is already evicted. Then its token may be smaller.
  auto& last = last_token_[hold->name()];
  const bool evicted = evicted_.contains(hold->token()) || store_->broke_promise(hold->token()) ||
                       store_->forced(hold->token()) || ended_sessions_.contains(grant.session);
  if (!evicted ? hold->token() <= last : hold->token() == last && !rolled_back_) {
    fail("C2 token " + std::to_string(hold->token()) + " of " + hold->name().text() +
         " granted after " + std::to_string(last));
  }
  if (!rolled_back_ || !evicted) last = std::max(last, hold->token());
  grants_.push_back(std::move(grant));
}

// After a rollback the store may hand out the same tokens again.
void Simulation::check_rollback() {
  if (store_->rolled_back_from() == 0) return;
  const auto now = world_.now();
  if (!rolled_back_) {
    rolled_back_ = now;
    last_token_.clear();
    for (auto& grant : grants_) evicted_.insert(grant.hold->token());
  }
}

// Whether no fault has affected this client since the time `since`.
bool Simulation::calm(int client, Time since) const {
  if (rough_ || troubled_until_ > since) return false;
  return std::any_of(slots_.begin(), slots_.end(), [&](const auto& slot) {
    return slot->client != nullptr && slot->client->number() == client &&
           slot->troubled_until <= since;
  });
}

void Simulation::announced_lost(int client, const std::shared_ptr<Hold>& hold) {
  world_.note("client " + std::to_string(client) + " lost " + std::to_string(hold->token()));
  // C9: a loss is announced once, and only if the hold is no longer valid.
  if (hold->valid()) fail("C9 announced as lost, but valid: " + std::to_string(hold->token()));
  for (auto& grant : grants_) {
    if (grant.hold != hold) continue;
    if (grant.announced) fail("C9 loss announced twice: " + std::to_string(hold->token()));
    grant.announced = true;
  }
}

void Simulation::check_all() {
  const auto now = world_.now();
  check_rollback();
  for (const auto& lock : locks_) {
    int valid = 0;
    for (auto& grant : grants_) {
      if (grant.lock != lock) continue;
      const std::uint64_t token = grant.hold->token();
      if (!believed(grant)) {
        if (!grant.was_invalid) grant.invalid_since = now;
        grant.was_invalid = true;
        // C7: a loss is announced within 50 ms while the process runs.
        if (client_paused(grant.client)) grant.invalid_since = now;
        // Not checked after a rollback: the store may have a ticket again that the client saw
        // removed.
        if (grant.hold->is_held() && !rolled_back_ && now > grant.invalid_since + 50ms) {
          fail("C7 not announced as lost in time: " + std::to_string(token));
        }
        continue;
      }
      if (grant.was_invalid) fail("C9 valid again: " + std::to_string(token));
      // A1 or A3 does not hold here, so only the token protects the resource. A client in contact
      // with the store must notice the loss within 1.2 seconds.
      if (evicted_.contains(token) || ended_sessions_.contains(grant.session) ||
          store_->forced(token) || store_->broke_promise(token)) {
        if (!store_->broke_promise(token) && (rolled_back_ || watches_are_lost_)) continue;
        // The leader may have been cut off. Then the request of the operator may never take effect.
        if (store_->front(lock) == token) {
          grant.broken_since = Time{};
          continue;
        }
        if (grant.broken_since == Time{}) grant.broken_since = now;
        if (now > grant.broken_since + 1200ms && calm(grant.client, grant.broken_since)) {
          fail("C7 a hold that the store took away is still valid: " + std::to_string(token));
        }
        continue;
      }
      ++valid;
      // C1 and C5: if a hold is valid, its entry is the first at the store at the same moment.
      if (const auto front = store_->front(lock); front != token) {
        fail("C1 " + lock.text() + " valid with token " + std::to_string(token) +
             " while the store has " + std::to_string(front) + " in front");
      }
    }
    if (valid > 1) fail("C1 two valid holds of " + lock.text());
  }
  // Ended grants are kept for a while, to check that they do not become valid again.
  if (grants_.size() > 24) {
    const auto old = std::find_if(grants_.begin(), grants_.end(), [](const Grant& g) {
      return !g.hold->is_held() && g.was_invalid;
    });
    if (old != grants_.end()) grants_.erase(old);
  }
}

void Simulation::check_end() {
  // C4: every acquire has an outcome.
  if (pending_ != 0) fail("C4 " + std::to_string(pending_) + " acquires never ended");
  // C6: no entry, watch, session or unfinished work is left.
  std::size_t alive = 0;
  for (const auto& slot : slots_) {
    if (slot->client == nullptr) continue;
    ++alive;
    if (!slot->client->engine().idle()) fail("C6 a client is not idle");
  }
  if (const auto left = store_->left_over(alive); !left.empty()) fail("C6 " + left);
}

}  // namespace baton::sim
