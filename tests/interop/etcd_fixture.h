// etcd's part of the interop tests.
#pragma once

#include "interop/fixture.h"
#include "support/etcd_server.h"

#include <chrono>
#include <memory>
#include <string>

namespace baton::interop {

// Ours, or the one that the environment names.
inline const std::string& shared_etcd() {
  static const auto given = test::etcd_from_environment();
  static const auto own = given ? nullptr : std::make_unique<test::EtcdCluster>();
  static const std::string hosts = given ? *given : own->hosts();
  return hosts;
}

// A lease ends at most a second late; the rest is for a slow machine.
inline constexpr Setting kEtcd{Store::etcd, shared_etcd, Library::go, 1s + 2s};

}  // namespace baton::interop
