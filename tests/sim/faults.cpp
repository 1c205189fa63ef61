// The faults of a simulated run.
#include "simulation.h"
#include "simulation_parts.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace baton::sim {

using namespace std::chrono_literals;

void Simulation::nemesis() {
  if (healed_) return;
  Slot& slot = *slots_[world_.pick(0, slots_.size() - 1)];
  if (slot.client != nullptr && !faults_on_.empty()) strike(slot);
  world_.after(world_.span(timeout_ / 8, timeout_), [this] { nemesis(); });
}

void Simulation::strike(Slot& slot) {
  auto kind = faults_on_.begin();
  std::advance(kind, static_cast<std::ptrdiff_t>(world_.pick(0, faults_on_.size() - 1)));
  ++outcome_.faults;
  const std::string who = "client " + std::to_string(slot.client->number());
  if (*kind != kOfServers) {
    slot.troubled_until = std::max(slot.troubled_until, world_.now() + timeout_ * 3);
  }
  switch (*kind) {
    case kStop:
    case kSuspend: {
      const auto span = world_.span(1ms, timeout_ * 3);
      world_.note(who + (*kind == kStop ? " is stopped" : " is suspended"));
      slot.client->pause(*kind == kSuspend, span);
      break;
    }
    case kCrash:
      crash_client(slot);
      break;
    case kCut:
    case kOneWay: {
      const bool requests = *kind == kCut || world_.chance(0.5);
      const bool answers = *kind == kCut || !requests;
      world_.note(who + " is cut off");
      slot.weather.up = !requests && slot.weather.up;
      slot.weather.down = !answers && slot.weather.down;
      world_.after(world_.span(1ms, timeout_ * 3),
                   [&slot] { slot.weather.up = slot.weather.down = true; });
      break;
    }
    case kEvict: {
      const auto& lock = locks_[world_.pick(0, locks_.size() - 1)];
      const auto entries = store_->entries(lock);
      if (entries.empty()) break;
      const auto& entry = entries[world_.pick(0, entries.size() - 1)];
      world_.note("evict " + entry.id);
      evicted_.insert(entry.token);
      store_->evict(lock, entry);
      break;
    }
    case kEndSession: {
      // An operator or a server bug ends the session. The guarantee of early loss does not cover
      // this.
      const auto& lock = locks_[world_.pick(0, locks_.size() - 1)];
      const auto entries = store_->entries(lock);
      if (entries.empty()) break;
      const auto session = entries[world_.pick(0, entries.size() - 1)].session;
      world_.note("end session " + std::to_string(session));
      ended_sessions_.insert(session);
      for (const auto& any : locks_) {
        for (const auto& entry : store_->entries(any)) {
          if (entry.session == session) evicted_.insert(entry.token);
        }
      }
      store_->end_session(session);
      break;
    }
    case kOfServers:
      if (!store_->strike()) --outcome_.faults;
      troubled_until_ = std::max(troubled_until_, store_->troubled_until());
      break;
    case kSetClock: {
      const auto span = world_.span(1ms, timeout_ * 4);
      world_.note(who + "'s wall clock is set");
      slot.client->loop_sim().sim_clock().stepped_by(world_.chance(0.5) ? span : -span);
      break;
    }
    case kStorm: {
      world_.note(who + " has a storm");
      slot.weather.late = 0.3;
      slot.weather.lose_answer = 0.2;
      slot.weather.lose_request = 0.2;
      world_.after(world_.span(timeout_ / 4, timeout_ * 2), [this, &slot] {
        if (healed_) return;
        slot.weather.late = slot.usual.late;
        slot.weather.lose_answer = slot.usual.lose_answer;
        slot.weather.lose_request = slot.usual.lose_request;
      });
      break;
    }
    default:
      break;
  }
}

void Simulation::heal() {
  world_.note("healed");
  healed_ = true;
  for (auto& slot : slots_) slot->weather = Weather{};
  store_->heal();
}

}  // namespace baton::sim
