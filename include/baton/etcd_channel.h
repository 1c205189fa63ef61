// EtcdChannel: a gRPC channel of the program instead of a URL. Names grpc::Channel and includes no
// header of gRPC.
#pragma once

#include <memory>
#include <string>
#include <utility>

namespace grpc {
class Channel;
}

namespace baton {

// The place of a store for Client::connect(): a channel to an etcd cluster, and a root.
//
//   etcd::Client etcd("http://10.0.0.5:2379");  // etcd-cpp-apiv3, for example
//   auto locks = baton::Client::connect(etcd.grpc_channel());
//   auto other = baton::Client::connect({etcd.grpc_channel(), "/app"}, options);
//
// The channel is shared: baton keeps it while the client lives, and never closes it. TLS, endpoints
// and reconnecting are those of the channel. baton's own failover between endpoints needs an
// etcd:// URL. ClientOptions::credentials work as with a URL; ClientOptions::tls must be empty, or
// connect() fails with Error(invalid_argument). A build without etcd fails with Error(unsupported).
class EtcdChannel {
 public:
  // root: the namespace of the locks, "" or like "/app", as in etcd://host:port/app;
  // "?token_base=N" may follow it. Checks nothing: a null channel or a bad root is
  // Error(invalid_argument) at Client::connect().
  EtcdChannel(std::shared_ptr<grpc::Channel> channel, std::string root = {})  // NOLINT: implicit
      : channel_(std::move(channel)), root_(std::move(root)) {}

  // What the constructor was given. Good as long as this object.
  const std::shared_ptr<grpc::Channel>& channel() const noexcept { return channel_; }
  const std::string& root() const noexcept { return root_; }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::string root_;
};

}  // namespace baton
