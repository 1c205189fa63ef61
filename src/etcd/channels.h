// Channels: implements Transport over gRPC, with one channel per endpoint.
#pragma once

#include "common/base/clock.h"
#include "common/seam/url.h"
#include "etcd/completion_loop.h"
#include "etcd/transport.h"

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace baton::etcd {

struct ChannelEndpoint {
  std::string name;  // for messages
  std::shared_ptr<grpc::Channel> channel;
  std::function<std::shared_ptr<grpc::Channel>()> another;  // null: the program's channel
  std::optional<Time> connecting_since{};  // set only while check_connecting() waits
};

// Creates a channel to each endpoint. A channel connects when it is first used.
std::vector<ChannelEndpoint> make_channel_endpoints(
    const std::vector<Endpoint>& endpoints,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials);

class Channels final : public Transport {
 public:
  Channels(const CompletionLoop& loop, std::vector<ChannelEndpoint> endpoints);
  ~Channels() override;

  std::size_t endpoints() const override { return endpoints_.size(); }
  std::string endpoint(std::size_t i) const override { return endpoints_.at(i).name; }
  bool unreachable(std::size_t i) override;
  void renew(std::size_t i) override;
  void ask(std::size_t endpoint, Call call, const Message& request,
           std::unique_ptr<Message> response, const CallOptions& options, CallAnswer answer,
           Task* cancel) override;
  std::unique_ptr<Stream> open(std::size_t endpoint, StreamKind flow, const std::string& token,
                               StreamListener& listener) override;

 private:
  // Replaces a channel that has been connecting for too long because the wall clock was set back
  // and gRPC's timers stand still.
  void check_connecting(std::size_t i);
  void replace(ChannelEndpoint& endpoint);

  const std::shared_ptr<CallRegistry> calls_;
  std::vector<ChannelEndpoint> endpoints_;
};

}  // namespace baton::etcd
