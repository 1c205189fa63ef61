// EtcdChannels: EtcdWire over gRPC, one channel per endpoint.
#pragma once

#include "common/base/clock.h"
#include "common/seam/url.h"
#include "etcd/loop.h"
#include "etcd/wire.h"

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace baton::internal {

struct EtcdEndpoint {
  std::string name;  // for messages
  std::shared_ptr<grpc::Channel> channel;
  std::function<std::shared_ptr<grpc::Channel>()> another;  // null: this one is not ours
  std::optional<Time> connecting_since{};                   // none: it need not connect
};

// A channel of ours to each of these. Nothing is sent before it is used.
std::vector<EtcdEndpoint> make_etcd_endpoints(
    const std::vector<Endpoint>& endpoints,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials);

class EtcdChannels final : public EtcdWire {
 public:
  EtcdChannels(const EtcdLoop& loop, std::vector<EtcdEndpoint> endpoints);
  ~EtcdChannels() override;

  std::size_t endpoints() const override { return endpoints_.size(); }
  std::string endpoint(std::size_t i) const override { return endpoints_.at(i).name; }
  bool unreachable(std::size_t i) override;
  void renew(std::size_t i) override;
  void ask(std::size_t endpoint, EtcdCall call, const EtcdMessage& request,
           std::unique_ptr<EtcdMessage> response, const EtcdCallOptions& options, EtcdAnswer answer,
           Task* cancel) override;
  std::unique_ptr<EtcdStream> open(std::size_t endpoint, EtcdFlow flow, const std::string& token,
                                   EtcdStreamListener& listener) override;

 private:
  // Makes a channel anew that has been trying to connect for too long because time stands still for
  // it.
  void check_connecting(std::size_t i);
  void replace(EtcdEndpoint& endpoint);

  const std::shared_ptr<EtcdCalls> calls_;
  std::vector<EtcdEndpoint> endpoints_;
};

}  // namespace baton::internal
