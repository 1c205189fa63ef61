// A gRPC channel that the program has already, as docs/stores/etcd.md shows it.
#include "support/etcd_server.h"

#include <baton/baton.h>
#include <baton/etcd_channel.h>

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace baton::chaos {
namespace {

class EtcdSharedChannel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::etcd_installed()) GTEST_SKIP() << "etcd is not installed";
    server_ = std::make_unique<test::EtcdCluster>();
  }
  std::unique_ptr<test::EtcdCluster> server_;
};

TEST_F(EtcdSharedChannel, GivesTheSameLocksAsAUrl) {
  const std::string address = server_->hosts();
  auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  auto client = baton::Client::connect({channel, "/app"});
  baton::Lock lock = client.mutex("orders/7").acquire();

  EXPECT_TRUE(lock.valid());
  auto other = baton::Client::connect("etcd://" + address + "/app");
  EXPECT_FALSE(other.mutex("orders/7").try_acquire());
  EXPECT_EQ(other.inspect("orders/7").entries.front().token, lock.token());
  lock.release();
  EXPECT_TRUE(other.mutex("orders/7").try_acquire());
}

TEST_F(EtcdSharedChannel, OutlivesTheClient) {
  auto channel = grpc::CreateChannel(server_->hosts(), grpc::InsecureChannelCredentials());
  for (int i = 0; i < 3; ++i) {
    auto client = baton::Client::connect(baton::EtcdChannel(channel));
    client.mutex("a").acquire().release();
  }
  EXPECT_EQ(channel->GetState(false), GRPC_CHANNEL_READY);
}

TEST_F(EtcdSharedChannel, WhatMakesNoSenseIsRefused) {
  const auto refused = [](const baton::EtcdChannel& channel, baton::ClientOptions options = {}) {
    const auto client = baton::Client::try_connect(channel, std::move(options));
    return !client && client.error().errc() == baton::Errc::invalid_argument;
  };
  auto channel = grpc::CreateChannel(server_->hosts(), grpc::InsecureChannelCredentials());
  EXPECT_TRUE(refused(baton::EtcdChannel(nullptr)));
  EXPECT_TRUE(refused({channel, "no-slash"}));
  EXPECT_TRUE(refused({channel, "/a//b"}));
  for (auto file :
       {&baton::TlsOptions::ca_file, &baton::TlsOptions::cert_file, &baton::TlsOptions::key_file}) {
    baton::ClientOptions with_tls;
    with_tls.tls.*file = "some.pem";
    EXPECT_TRUE(refused({channel, ""}, with_tls));
  }
}

}  // namespace
}  // namespace baton::chaos
