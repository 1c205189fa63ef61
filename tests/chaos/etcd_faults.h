// What the tests of faults on etcd share: real servers, and what must not be left on them.
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

inline constexpr std::chrono::milliseconds kEtcdTtl{4'000};  // of leases

// A server looks for leases that have run out every half second, and a whole one is promised.
inline constexpr std::chrono::milliseconds kEtcdGrace{1'000};

FaultyStore store_of(const test::EtcdCluster& etcd, std::chrono::milliseconds ttl = kEtcdTtl);

// Three servers, shared by all tests of the process. After each test nothing is left on them: no
// key, and no lease.
class EtcdFaults : public ::testing::Test {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite() { etcd_.reset(); }
  void SetUp() override;
  void TearDown() override;
  static test::EtcdCluster& etcd() { return *etcd_; }
  static FaultyStore store() { return store_of(etcd()); }
  static Client connect(const std::string& root, const std::string& label = "client");

  // So many leases and no more, at the latest when those of dead sessions have run out.
  static ::testing::AssertionResult leases_settle(std::size_t count);

 private:
  static std::unique_ptr<test::EtcdCluster> etcd_;
};

}  // namespace baton::chaos
