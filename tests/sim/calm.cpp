// Checks that after the faults a queue moves quickly, and that few watch events are sent.
#include "simulation.h"
#include "simulation_parts.h"

#include <algorithm>
#include <utility>

namespace baton::sim {

using namespace std::chrono_literals;
using internal::Attempt;
using internal::Hold;

namespace {
// A watch event arrives within milliseconds. A waiter that receives no event looks again after a
// second.
constexpr Nanos kPrompt = 700ms;
}  // namespace

void Simulation::calm_acquire(Slot& slot) {
  ++calm_.asked;
  ++slot.pending;
  ++pending_;
  const auto sink = std::make_shared<Sink>([this, &slot](Result<std::shared_ptr<Hold>> r) {
    --slot.pending;
    --pending_;
    if (!r) {
      if (!may_refuse_) fail("C4 not had in calm weather: " + internal::make_errc_text(r.error()));
      return true;
    }
    if (calm_.served++ != 0) {
      calm_.slow += world_.now() - calm_.released > kPrompt ? 1 : 0;
    }
    world_.after(100ms, [this, &slot, hold = *r] {
      slot.client->loop_sim().arrive([this, &slot, hold] {
        calm_.released = world_.now();
        if (hold->become_released()) {
          slot.client->engine().retire_hold(hold, nullptr);
        } else {
          fail("C7 lost in calm weather: " + std::to_string(hold->token()));
        }
      });
    });
    return true;
  });
  auto attempt = std::make_shared<Attempt>(locks_.front(), false, sink);
  attempt->started = slot.client->loop_sim().now();
  slot.client->engine().start(attempt);
}

// A client holds a lock while the store is restored from a backup. The client must notice this, and
// the hold must not stay valid (C9).
void Simulation::rollback_scene() {
  const auto slot = std::find_if(slots_.begin(), slots_.end(),
                                 [](const auto& each) { return each->client != nullptr; });
  if (slot == slots_.end() || !store_->go_on()) return;
  world_.note("a store that is set back");
  const auto held = std::make_shared<std::shared_ptr<Hold>>();
  SimClient& client = *(*slot)->client;
  client.loop_sim().arrive([this, held, &client] {
    const auto sink = std::make_shared<Sink>([held](Result<std::shared_ptr<Hold>> r) {
      if (r) *held = *r;
      return true;
    });
    auto attempt = std::make_shared<Attempt>(locks_.front(), false, sink);
    attempt->started = client.loop_sim().now();
    client.engine().start(attempt);
  });
  run_until(world_.now() + timeout_);
  // The answers to heartbeats carry the newest revision of the store to the holder.
  store_->go_on();
  run_until(world_.now() + timeout_);
  if (*held == nullptr || !(*held)->valid()) fail("C4 not had, or not kept, in calm weather");
  store_->forget_what_went_on();
  run_until(world_.now() + std::max<Nanos>(timeout_ / 2, 1s) * 6 / 5 + 500ms);
  if (!outcome_.failure.empty()) return;
  if ((*held)->valid()) fail("C9 still held after the store was set back");
  run_until(world_.now() + timeout_ * 3);
}

// The first round is not judged, because pauses between retries have grown during the faults. The
// second round is judged.
void Simulation::calm_round(bool judged) {
  world_.note("a calm round");
  calm_ = {};
  if (judged) store_->ruffle();
  const auto woken = store_->wake_ups();
  Nanos later{};
  for (auto& slot : slots_) {
    if (slot->client == nullptr) continue;
    world_.after(later, [this, &slot] {
      slot->client->loop_sim().arrive([this, &slot] { calm_acquire(*slot); });
    });
    later += 20ms;
  }
  const Time latest = world_.now() + 30s + later;
  while (outcome_.failure.empty() && world_.step(latest)) {
    check_all();
    if (world_.now() > latest - 30s && pending_ == 0 && nobody_in_line()) break;
  }
  run_until(world_.now() + 1s);
  if (!outcome_.failure.empty()) return;
  if (pending_ != 0) {
    std::string line;
    for (const auto& lock : locks_) {
      for (const auto& entry : store_->entries(lock)) line += " " + entry.id;
    }
    fail("C4 not had in calm weather; in line:" + line + "; " + store_->left_over(slots_.size()));
  }
  if (!judged) return;
  // Some hand-overs may meet a retry pause that has grown during the faults. Most must be quick.
  if (calm_.slow >= 2 && calm_.slow * 2 > calm_.served - 1) {
    fail("C4 " + std::to_string(calm_.slow) + " of " + std::to_string(calm_.served - 1) +
         " hand-overs were slow in calm weather");
  }
  // C8: a release may fire the watch of the next waiter and the holder's watch on its own entry.
  const auto told = store_->wake_ups() - woken;
  if (told > static_cast<std::uint64_t>(2 * calm_.served + 2)) {
    fail("C8 " + std::to_string(told) + " watches told of " + std::to_string(calm_.served) +
         " releases");
  }
}

}  // namespace baton::sim
