// A client on a gRPC channel that the program has created and continues to use.
#include "chaos/etcd_security.h"
#include "support/eventually.h"

#include <baton/etcd_channel.h>

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <utility>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::kLong;

class EtcdChannels : public EtcdSecurity {
 protected:
  static std::shared_ptr<grpc::Channel> channel_to(const std::string& host) {
    return grpc::CreateChannel(host, grpc::InsecureChannelCredentials());
  }
  // Returns whether the owner of the channel can send a request on it.
  static bool usable(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 10s);
    grpc::CompletionQueue queue;
    const grpc::Slice nothing("", 0);
    const grpc::ByteBuffer empty(&nothing, 1);  // a StatusRequest has no fields
    grpc::ByteBuffer response;
    grpc::Status status;
    auto call = stub.PrepareUnaryCall(&context, "/etcdserverpb.Maintenance/Status", empty, &queue);
    call->StartCall();
    call->Finish(&response, &status, &status);
    void* tag = nullptr;
    bool ok = false;
    const bool came = queue.Next(&tag, &ok);
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
    return came && status.ok() && response.Length() > 0;
  }
};

TEST_F(EtcdChannels, AChannelIsSharedAndOutlivesItsClients) {
  test::EtcdCluster etcd;
  const auto channel = channel_to(etcd.host(0));
  {
    auto client = Client::connect(channel);
    auto lock = client.mutex("job").acquire({.timeout = kLong});
    EXPECT_EQ(etcd.keys("job/").size(), 1U) << "without a root";
    EXPECT_TRUE(usable(channel));
    ClientOptions options = nobody();
    options.label = "rooted";
    auto rooted = Client::connect({channel, "/app"}, options);
    auto other = rooted.mutex("job").acquire({.timeout = kLong});
    EXPECT_EQ(etcd.keys("/app/job/").size(), 1U);
    EXPECT_EQ(rooted.inspect("job").entries.at(0).label, "rooted");
    EXPECT_EQ(rooted.session().backend, "etcd");
  }
  EXPECT_TRUE(etcd.keys().empty());
  EXPECT_TRUE(etcd.leases().empty());
  EXPECT_TRUE(usable(channel));
  EXPECT_EQ(channel.use_count(), 1);
  auto again = Client::connect(channel);
  again.mutex("job").acquire({.timeout = kLong}).release();
}

TEST_F(EtcdChannels, AClientGoesOnWhenItsChannelIsConnectedAgain) {
  test::EtcdCluster etcd;
  auto client = Client::connect({channel_to(etcd.host(0)), "/app"}, nobody());
  auto lock = client.mutex("job").acquire({.timeout = kLong});
  etcd.restart(0);
  lock.verify(kLong);
  lock.release(kLong);
  client.mutex("job").acquire({.timeout = kLong}).release();
}

TEST_F(EtcdChannels, CredentialsWorkAsWithAUrl) {
  test::EtcdCluster etcd;
  etcd.add_user(kApp.name, kApp.password, "/app/");
  etcd.enable_auth(kRoot.password);
  const auto channel = channel_to(etcd.host(0));
  auto client = Client::connect({channel, "/app"}, as(kApp));
  client.mutex("job").acquire({.timeout = kLong}).release();
  refused(Errc::permission_denied, [&] {
    (void)Client::connect({channel, "/app"}, as(kPretender));
  });
}

TEST_F(EtcdChannels, WhatMakesNoSenseIsRefused) {
  const auto channel = channel_to("127.0.0.1:1");
  const std::shared_ptr<grpc::Channel> none;
  refused(Errc::invalid_argument, [&] { (void)Client::connect(none); });
  for (const char* root : {"app", "/", "/app/", "/a//b", "/a b", "/.."}) {
    refused(Errc::invalid_argument, [&] { (void)Client::connect({channel, root}); });
  }
  for (auto file : {&TlsOptions::ca_file, &TlsOptions::cert_file, &TlsOptions::key_file}) {
    ClientOptions options = nobody();
    options.tls.*file = directory_ / "some.pem";
    refused(Errc::invalid_argument, [&] { (void)Client::connect({channel, "/app"}, options); });
  }
}

TEST_F(EtcdChannels, AChannelThatLeadsNowhereIsAFailureToConnect) {
  ClientOptions options = nobody();
  options.connect_timeout = 1s;
  refused(Errc::connection_failed, [&] {
    (void)Client::connect({channel_to("127.0.0.1:1"), "/app"}, options);
  });
}

}  // namespace
}  // namespace baton::chaos
