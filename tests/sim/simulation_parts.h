// Types that the source files of Simulation share.
#pragma once

#include "common/seam/lock_name.h"
#include "simulation.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace baton::internal {
inline std::string make_errc_text(const Error& error) { return error.code().message(); }
}  // namespace baton::internal

namespace baton::sim {

enum Fault {
  kStop,
  kSuspend,
  kCrash,
  kCut,
  kOneWay,
  kEvict,
  kEndSession,
  kStorm,
  kOfServers,
  kSetClock,
  kFaultKinds
};

struct Simulation::Slot {
  Weather weather;  // current weather
  Weather usual;
  std::unique_ptr<SimClient> client;  // null: crashed
  int pending = 0;                    // number of acquires under way
  Time troubled_until{};
};

struct Simulation::Actor {
  SimClient* client = nullptr;  // valid while life->alive
  std::shared_ptr<Life> life;
};

class Simulation::Sink final : public internal::AttemptSink {
 public:
  using Result_ = Result<std::shared_ptr<internal::Hold>>;
  explicit Sink(std::function<bool(Result_)> f) : f_(std::move(f)) {}
  bool offer(Result_ outcome) noexcept override { return f_(std::move(outcome)); }

 private:
  std::function<bool(Result_)> f_;
};

template <class Slots>
auto& slot_of(Slots& slots, const SimClient* client) {
  for (auto& slot : slots) {
    if (slot->client.get() == client) return *slot;
  }
  std::abort();  // the client of an actor is always in a slot
}

}  // namespace baton::sim
