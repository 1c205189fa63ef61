// Shared by the tests of faults on ZooKeeper: real servers.
#pragma once

#include "chaos/faults.h"
#include "support/zk_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

namespace baton::chaos {

inline constexpr std::chrono::milliseconds kZkTimeout{4'000};  // session timeout
inline constexpr std::chrono::milliseconds kZkTick{500};

FaultyStore store_of(const test::ZkEnsemble& zk);

// Three servers with short ticks, shared by all tests of the process.
class ZkFaults : public ::testing::Test {
 protected:
  static void SetUpTestSuite();
  void SetUp() override;
  static test::ZkEnsemble& zk() { return *zk_; }

 private:
  static std::unique_ptr<test::ZkEnsemble> zk_;
};

}  // namespace baton::chaos
