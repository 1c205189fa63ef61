// EtcdChannel: a gRPC channel of yours instead of a URL. The only header of baton that names gRPC;
// it needs none of gRPC's.
//
//   etcd::Client etcd("http://10.0.0.5:2379");               // etcd-cpp-apiv3, say
//   auto locks = baton::Client::connect(etcd.grpc_channel());
//   auto other = baton::Client::connect({etcd.grpc_channel(), "/app"}, options);
#pragma once

#include <memory>
#include <string>
#include <utility>

namespace grpc {
class Channel;
}

namespace baton {

// Shared: baton keeps the channel while the client lives, and never closes it. Whatever the channel
// was made with counts: its TLS, its endpoints, its reconnecting. baton's own failover between
// endpoints needs an etcd:// URL. ClientOptions::credentials work as with a URL; ClientOptions::tls
// must be empty.
class EtcdChannel {
 public:
  // root: the namespace of the locks, "" or like "/app"; as in etcd://host:port/app, and
  // "?token_base=N" may follow it. A null channel
  // or a bad root gives Error(invalid_argument) when connecting.
  EtcdChannel(std::shared_ptr<grpc::Channel> channel, std::string root = {})  // NOLINT: implicit
      : channel_(std::move(channel)), root_(std::move(root)) {}

  const std::shared_ptr<grpc::Channel>& channel() const noexcept { return channel_; }
  const std::string& root() const noexcept { return root_; }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::string root_;
};

}  // namespace baton
