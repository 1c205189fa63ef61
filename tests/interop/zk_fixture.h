// ZooKeeper's part of the interop tests.
#pragma once

#include "interop/fixture.h"
#include "support/zk_server.h"

#include <chrono>
#include <memory>
#include <string>

namespace baton::interop {

inline constexpr auto kTick = 500ms;  // so that such a session is possible; the longest is 10 s

inline test::ZkOptions short_ticks() {
  test::ZkOptions options;
  options.tick = kTick;
  return options;
}

// Ours, or the one that the environment names.
inline const std::string& shared_zk() {
  static const auto given = test::zk_from_environment();
  static const auto own = given ? nullptr : std::make_unique<test::ZkEnsemble>(short_ticks());
  static const std::string hosts = given ? *given : own->hosts();
  return hosts;
}

// A session ends up to 1.5 ticks late; the rest is for a slow machine.
inline constexpr Setting kZk{Store::zk, shared_zk, Library::kazoo, kTick * 3 / 2 + 5s};

}  // namespace baton::interop
