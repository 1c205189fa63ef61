// EngineContext: what the parts of the Engine share.
#pragma once

#include <baton/options.h>

#include "common/client/hold.h"
#include "common/base/log.h"
#include "common/base/loop.h"
#include "common/seam/session.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>

namespace baton::internal {

// What the engine needs from its owner (the client or the simulator). Called on the strand.
class EngineHost {
 public:
  virtual ~EngineHost() = default;
  virtual std::weak_ptr<HoldKeeper> keeper() = 0;
  virtual void hold_granted(const std::shared_ptr<Hold>& hold) = 0;
  virtual void hold_lost(const std::shared_ptr<Hold>& hold) = 0;  // announce the loss
  // The hold was released, or its loss is known already: stop watching its deadline.
  virtual void on_hold_closed(const std::shared_ptr<Hold>& hold) = 0;
  virtual void metric(const MetricEvent& event, const LockName* lock) = 0;
};

// Used on the strand. Only SessionKeeper changes session, epoch, trouble and closing.
struct EngineContext {
  EngineContext(Backend& b, EngineHost& h, LogFunction l, std::uint32_t seed, std::uint64_t base)
      : loop(b.loop()), backend(b), host(h), log(std::move(l)), random(seed), token_base(base) {}

  // How long to wait before a retry.
  std::chrono::nanoseconds backoff(int failures) {
    // 50 ms, doubled up to 5 s, and then a random part between half and all of it: clients must not
    // retry at the same moment.
    const auto base = std::min<std::int64_t>(50LL << std::min(failures, 7), 5000);
    std::uniform_int_distribution<std::int64_t> jitter(base * 500'000, base * 1'000'000);
    return Nanos(jitter(random));
  }

  Loop& loop;
  Backend& backend;
  EngineHost& host;
  const LogFunction log;
  std::minstd_rand random;
  const std::uint64_t token_base;

  std::unique_ptr<Session> session;  // null while there is none
  std::uint64_t epoch = 0;  // changes with the session: answers of earlier sessions are ignored
  std::string trouble;      // why there is no session
  bool closing = false;     // close() was called
};

}  // namespace baton::internal
