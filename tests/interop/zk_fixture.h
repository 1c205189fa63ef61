// The ZooKeeper server of the interop tests.
#pragma once

#include "interop/fixture.h"
#include "support/zk_server.h"

#include <chrono>
#include <memory>
#include <string>

namespace baton::interop {

inline constexpr auto kTick = 500ms;  // allows session timeouts from 1 s to 10 s (2 to 20 ticks)

inline test::ZkOptions short_ticks() {
  test::ZkOptions options;
  options.tick = kTick;
  return options;
}

// The hosts of a server that the process starts, or of the servers that BATON_TEST_ZK names.
inline const std::string& shared_zk() {
  static const auto given = test::zk_from_environment();
  static const auto own = given ? nullptr : std::make_unique<test::ZkEnsemble>(short_ticks());
  static const std::string hosts = given ? *given : own->hosts();
  return hosts;
}

// A session ends at most 1.5 ticks late. The other 5 s are for a slow machine.
inline constexpr Setting kZk{Store::zk, shared_zk, Library::kazoo, kTick * 3 / 2 + 5s};

}  // namespace baton::interop
