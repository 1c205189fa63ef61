// The etcd server of the interop tests.
#pragma once

#include "interop/fixture.h"
#include "support/etcd_server.h"

#include <chrono>
#include <memory>
#include <string>

namespace baton::interop {

// The hosts of a server that the process starts, or of the servers that BATON_TEST_ETCD names.
inline const std::string& shared_etcd() {
  static const auto given = test::etcd_from_environment();
  static const auto own = given ? nullptr : std::make_unique<test::EtcdCluster>();
  static const std::string hosts = given ? *given : own->hosts();
  return hosts;
}

// A lease ends at most 1 s late. The other 2 s are for a slow machine.
inline constexpr Setting kEtcd{Store::etcd, shared_etcd, Library::go, 1s + 2s};

}  // namespace baton::interop
