// Shared by the tests of faults on etcd: real servers, and a check that nothing is left on them.
#pragma once

#include "chaos/faults.h"
#include "support/etcd_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace baton::chaos {

inline constexpr std::chrono::milliseconds kEtcdTtl{4'000};  // TTL of the leases

// A server looks for expired leases every half second. The contract promises a whole second.
inline constexpr std::chrono::milliseconds kEtcdGrace{1'000};

FaultyStore store_of(const test::EtcdCluster& etcd, std::chrono::milliseconds ttl = kEtcdTtl);

// Three servers, shared by all tests of the process. After each test no key and no lease may be
// left on them.
class EtcdFaults : public ::testing::Test {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite() { etcd_.reset(); }
  void SetUp() override;
  void TearDown() override;
  static test::EtcdCluster& etcd() { return *etcd_; }
  static FaultyStore store() { return store_of(etcd()); }
  static Client connect(const std::string& root, const std::string& label = "client");

  // Waits until exactly so many leases exist, at most until those of dead sessions have expired.
  static ::testing::AssertionResult leases_settle(std::size_t count);

 private:
  static std::unique_ptr<test::EtcdCluster> etcd_;
};

}  // namespace baton::chaos
