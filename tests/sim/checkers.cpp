// What must hold at every instant, and at the end.
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

void Simulation::granted(int client, const std::shared_ptr<Hold>& hold) {
  ++outcome_.grants;
  world_.note("client " + std::to_string(client) + " holds " + hold->name().text() + " " +
              std::to_string(hold->token()));
  // C2: each grant has a greater token than every earlier grant of the name. Grants count in the
  // order of the store: an answer that was overtaken by the eviction of its entry comes late.
  auto& last = last_token_[hold->name()];
  if (!evicted_.contains(hold->token()) ? hold->token() <= last : hold->token() == last) {
    fail("C2 token " + std::to_string(hold->token()) + " of " + hold->name().text() +
         " granted after " + std::to_string(last));
  }
  last = std::max(last, hold->token());
  grants_.push_back({client, hold->name(), hold, false, {}, false});
}

void Simulation::announced_lost(int client, const std::shared_ptr<Hold>& hold) {
  world_.note("client " + std::to_string(client) + " lost " + std::to_string(hold->token()));
  // C9: told once, and only of what is no longer valid.
  if (hold->valid()) fail("C9 announced as lost, but valid: " + std::to_string(hold->token()));
  for (auto& grant : grants_) {
    if (grant.hold != hold) continue;
    if (grant.announced) fail("C9 loss announced twice: " + std::to_string(hold->token()));
    grant.announced = true;
  }
}

void Simulation::check_all() {
  const auto now = world_.now();
  for (const auto& lock : locks_) {
    int valid = 0;
    for (auto& grant : grants_) {
      if (grant.lock != lock) continue;
      const std::uint64_t token = grant.hold->token();
      if (!grant.hold->valid()) {
        if (!grant.was_invalid) grant.invalid_since = now;
        grant.was_invalid = true;
        // C7: a loss is announced within 50 ms, while the process runs.
        if (client_paused(grant.client)) grant.invalid_since = now;
        if (grant.hold->is_held() && now > grant.invalid_since + 50ms) {
          fail("C7 not announced as lost in time: " + std::to_string(token));
        }
        continue;
      }
      if (grant.was_invalid) fail("C9 valid again: " + std::to_string(token));
      if (evicted_.contains(token)) continue;  // A3 does not hold: only the token protects
      ++valid;
      // C1 and C5: valid means first in line at the store, at this very instant.
      if (const auto front = store_->front_token(lock); front != token) {
        fail("C1 " + lock.text() + " valid with token " + std::to_string(token) +
             " while the store has " + std::to_string(front) + " in front");
      }
    }
    if (valid > 1) fail("C1 two valid holds of " + lock.text());
  }
  // Those that ended are kept for a while: they must not come back.
  if (grants_.size() > 24) {
    const auto old = std::find_if(grants_.begin(), grants_.end(), [](const Grant& g) {
      return !g.hold->is_held() && g.was_invalid;
    });
    if (old != grants_.end()) grants_.erase(old);
  }
}

void Simulation::check_end() {
  // C4: everybody who waited has an outcome.
  if (pending_ != 0) fail("C4 " + std::to_string(pending_) + " acquires never ended");
  // C6: nothing is left anywhere.
  for (const auto& name : store_->list("")) fail("C6 an entry is left in " + name);
  if (store_->watches() != 0) fail("C6 a watch is left");
  std::size_t alive = 0;
  for (const auto& slot : slots_) {
    if (slot->client == nullptr) continue;
    ++alive;
    if (!slot->client->engine().idle()) fail("C6 a client is not idle");
  }
  if (store_->sessions() > alive) fail("C6 a session is left");
}

}  // namespace baton::sim
