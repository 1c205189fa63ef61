#include "sim_client.h"

#include "bugs.h"
#include "common/base/jitter.h"

#include <utility>

namespace baton::internal {
#ifdef BATON_MUTANTS
std::uint32_t next_jitter_seed = 1;
#endif
}  // namespace baton::internal

namespace baton::sim {

using internal::Hold;

SimClient::SimClient(World& world, Witness& witness, int number, SimStore& store,
                     const Weather& weather, std::chrono::milliseconds timeout)
    : world_(world),
      witness_(witness),
      store_(store),
      number_(number),
      life_(std::make_shared<Life>()),
      loop_(std::make_shared<SimLoop>(world, life_, any_rate(world))),
      port_(store.connect({loop_, life_, &weather, number,
                           [this, timeout] { pause(false, world_.span(timeout / 2, timeout)); }})) {
  notes_.client = number;
  engine_ = std::make_unique<internal::Engine>(
      *this, *this, [](LogLevel, std::string_view) {},
      static_cast<std::uint32_t>(world.pick(1, 1U << 30)));
  loop_->enter([this] { engine_->open([](Result<internal::Done>) {}); });
}

SimClient::~SimClient() {
  life_->alive = false;
  loop_->clear();
  engine_.reset();
  port_.reset();
}

void SimClient::hold_granted(const std::shared_ptr<Hold>& hold) {
  notes_.granted.insert(hold->nonce());
  witness_.granted(number_, hold);
  watch_deadline(hold);
}

void SimClient::open(internal::SessionListener& listener,
                     internal::Answer<std::unique_ptr<internal::Session>> answer) {
  port_->open(listener, [this, answer = std::move(answer)](
                            Result<std::unique_ptr<internal::Session>> opened) mutable {
    notes_.granted.clear();
    if (opened) opened = with_seeded_bug(std::move(*opened), *loop_, notes_, store_);
    answer(std::move(opened));
  });
}

// Does what the loss thread does: wakes at the deadline, checks whether the deadline has moved, and
// declares the loss if it has not.
void SimClient::watch_deadline(const std::shared_ptr<Hold>& hold) {
  loop_->at(hold->lease().deadline(), [this, hold] {
    if (!hold->is_held()) return;
    if (seeded(Bug::loss_timer_on_io)) {
      // As if the loss thread waited for an answer from the network.
      loop_->at(loop_->now() + std::chrono::milliseconds(200),
                [this, hold] { deadline_passed(hold); });
      return;
    }
    deadline_passed(hold);
  });
}

void SimClient::deadline_passed(const std::shared_ptr<Hold>& hold) {
  if (!hold->is_held()) return;
  const Errc due = hold->due_loss();
  if (due == Errc{}) {
    watch_deadline(hold);
  } else if (hold->become_lost(due)) {
    announce_loss(hold);
    engine_->retire_hold(hold, nullptr);
  }
}

void SimClient::hold_lost(const std::shared_ptr<Hold>& hold) { announce_loss(hold); }

void SimClient::announce_loss(const std::shared_ptr<Hold>& hold) {
  notes_.lost.insert(hold->nonce());
  witness_.announced_lost(number_, hold);
}

bool SimClient::believes_in(const Hold& hold) const {
  if (seeded(Bug::valid_after_release) && hold.state() == LockState::released) return true;
  if (seeded(Bug::revive_lost) && hold.lost_reason() == Errc::session_expired &&
      notes_.granted.contains(hold.nonce()) && engine_->session() != nullptr) {
    // The session has answered late, and has a new lease.
    const auto lease = engine_->session()->lease();
    return !lease->ended() && loop_->now() < lease->deadline();
  }
  return hold.valid();
}

void SimClient::pause(bool suspend, Nanos span) {
  if (life_->paused) return;
  life_->paused = true;
  ++life_->pauses;
  // While a machine is suspended, its monotonic clock stops and its boot clock goes on.
  if (suspend) loop_->sim_clock().suspended_for(span);
  world_.after(span, [this, life = life_] {
    if (life->alive) loop_->resume();
  });
}

}  // namespace baton::sim
