// Checks that a Proxy cuts gRPC connections at the frames that a test selects.
#include "support/etcd_server.h"
#include "support/eventually.h"
#include "support/proxy.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace baton::test {
namespace {

constexpr auto kUp = Direction::kToServer;
constexpr auto kDown = Direction::kToClient;

// A protobuf field of bytes, shorter than 128.
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

// A client that uses the gRPC library, as baton does.
class Caller {
 public:
  explicit Caller(const std::string& host) {
    grpc::ChannelArguments arguments;
    arguments.SetInt("grpc.enable_retries", 0);
    arguments.SetInt("grpc.initial_reconnect_backoff_ms", 50);
    arguments.SetInt("grpc.min_reconnect_backoff_ms", 50);
    channel_ = grpc::CreateCustomChannel(host, grpc::InsecureChannelCredentials(), arguments);
    stub_ = std::make_unique<grpc::GenericStub>(channel_);
  }

  grpc::StatusCode put(const std::string& key, const std::string& value) {
    return call("/etcdserverpb.KV/Put", field(1, key) + field(2, value));
  }
  // For calls after a cut: gRPC may still send the first calls on the closed connection.
  ::testing::AssertionResult put_again(const std::string& key, const std::string& value) {
    return eventually("put by a new connection", [&] { return put(key, value) == grpc::OK; });
  }
  grpc::StatusCode range(const std::string& key) {
    return call("/etcdserverpb.KV/Range", field(1, key));
  }

 private:
  grpc::StatusCode call(const std::string& path, const std::string& message) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 10s);
    context.set_wait_for_ready(true);
    const grpc::Slice slice(message);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer answer;
    std::promise<grpc::Status> done;
    stub_->UnaryCall(&context, path, {}, &request, &answer,
                     [&done](grpc::Status status) { done.set_value(std::move(status)); });
    return done.get_future().get().error_code();
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

class EtcdProxy : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!etcd_installed() || !etcdctl_installed()) GTEST_SKIP() << "no etcd on this machine";
    etcd = std::make_unique<EtcdCluster>();
    proxy = std::make_unique<Proxy>(etcd->client_port(0));
  }

  // Records the call of each message that passes in this direction.
  void listen(Direction direction) {
    constexpr int kNever = 1'000'000'000;
    proxy->cut_at_grpc(direction, kNever, true, [this](const Http2Frame& frame) {
      const std::lock_guard lock(mutex);
      if (grpc_messages(frame)) heard.push_back(frame.path);
      return false;
    });
  }
  std::vector<std::string> all_heard() {
    const std::lock_guard lock(mutex);
    return heard;
  }

  std::unique_ptr<EtcdCluster> etcd;
  std::mutex mutex;
  std::vector<std::string> heard;
  std::unique_ptr<Proxy> proxy;
};

TEST_F(EtcdProxy, CallsAreKnownByName) {
  listen(kUp);
  listen(kDown);
  Caller caller(proxy->host());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(caller.put("a", "1"), grpc::OK);
    EXPECT_EQ(caller.range("a"), grpc::OK);
  }
  const std::vector<std::string> twice{"/etcdserverpb.KV/Put", "/etcdserverpb.KV/Put",
                                       "/etcdserverpb.KV/Range", "/etcdserverpb.KV/Range"};
  std::vector<std::string> expected;
  for (int i = 0; i < 3; ++i) expected.insert(expected.end(), twice.begin(), twice.end());
  EXPECT_EQ(all_heard(), expected);
  EXPECT_EQ(proxy->grpc_frames(kUp), 6U);
  EXPECT_EQ(proxy->grpc_frames(kDown), 6U);
}

TEST_F(EtcdProxy, CallsOfOtherLibrariesAreKnownToo) {
  listen(kUp);
  EXPECT_EQ(etcdctl(proxy->host(), {"put", "a", "1"}).code, 0);
  EXPECT_EQ(all_heard(), std::vector<std::string>{"/etcdserverpb.KV/Put"});
}

TEST_F(EtcdProxy, ALostRequestIsNotDone) {
  Caller caller(proxy->host());
  EXPECT_EQ(caller.put("a", "1"), grpc::OK);
  proxy->cut_at_grpc(kUp, 2, false, grpc_method("KV/Put"));
  EXPECT_EQ(caller.put("a", "2"), grpc::OK);
  EXPECT_EQ(caller.range("a"), grpc::OK);  // the filter does not select it
  EXPECT_FALSE(proxy->wait_cut(kUp, 0ms));
  EXPECT_EQ(caller.put("a", "3"), grpc::UNAVAILABLE);
  EXPECT_TRUE(proxy->wait_cut(kUp));
  EXPECT_EQ(etcd->key("a").value().value, "2");
  EXPECT_TRUE(caller.put_again("a", "4"));
  EXPECT_GE(proxy->accepted(), 2U);  // gRPC may connect more than once on a busy machine
  EXPECT_EQ(etcd->key("a").value().version, 3);
}

TEST_F(EtcdProxy, ALostAnswerIsOfARequestThatWasDone) {
  Caller caller(proxy->host());
  proxy->cut_at_grpc(kDown, 1, false, grpc_method("KV/Put"));
  EXPECT_EQ(caller.range("a"), grpc::OK);
  EXPECT_EQ(caller.put("a", "1"), grpc::UNAVAILABLE);
  EXPECT_TRUE(proxy->wait_cut(kDown));
  EXPECT_EQ(etcd->key("a").value().value, "1");
  EXPECT_EQ(etcd->key("a").value().version, 1);
  EXPECT_TRUE(caller.put_again("a", "2"));
}

TEST_F(EtcdProxy, ADeliveredAnswerIsAnAnswer) {
  Caller caller(proxy->host());
  // The status follows the message, in the second headers frame of the call.
  proxy->cut_at_grpc(kDown, 2, true, grpc_headers);
  EXPECT_EQ(caller.put("a", "1"), grpc::OK);
  EXPECT_TRUE(proxy->wait_cut(kDown));
  EXPECT_TRUE(caller.put_again("a", "2"));
  EXPECT_GE(proxy->accepted(), 2U);  // gRPC may connect more than once on a busy machine
}

TEST_F(EtcdProxy, EveryMessageCanBeCut) {
  int cuts = 0;
  for (bool cut = true; cut; cuts += cut ? 1 : 0) {
    etcd->remove_key("a");
    proxy->cut_at_grpc(kDown, cuts + 1, false);
    Caller caller(proxy->host());
    const bool range = caller.range("a") == grpc::OK;
    const bool put = range && caller.put("a", "1") == grpc::OK;
    // The caller may notice a cut before the proxy has completed it.
    cut = put ? proxy->wait_cut(kDown, 0ms) : proxy->wait_cut(kDown);
    EXPECT_EQ(put, !cut);
    EXPECT_EQ(etcd->key("a").has_value(), range);  // also if the answer was lost
  }
  EXPECT_EQ(cuts, 2);
}

}  // namespace
}  // namespace baton::test
