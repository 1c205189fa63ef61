// Client::try_connect(): makes a client from a URL or from an EtcdChannel. Only this file knows all
// backends.
#include <baton/client.h>
#include <baton/etcd_channel.h>

#include "common/client/client_impl.h"
#include "common/seam/lock_name.h"
#include "common/seam/url.h"
#include "file/backend.h"
#include "memory/backend.h"
#ifdef BATON_WITH_ETCD
#include "etcd/backend.h"
#endif
#ifdef BATON_WITH_ZK
#include "zk/backend.h"
#endif

#include <memory>
#include <string>
#include <utility>

namespace baton {

namespace {

using internal::Backend;
using internal::BackendOptions;
using internal::StoreKind;
using internal::StoreUrl;

Result<std::unique_ptr<Backend>> make_backend(const StoreUrl& url, const BackendOptions& options) {
  switch (url.kind) {
    case StoreKind::memory:
      return memory::make_backend(url.memory_name, options);
    case StoreKind::file:
      return file::make_backend(url.directory, options);
    case StoreKind::zk:
#ifdef BATON_WITH_ZK
      return zk::make_backend(url, options);
#else
      return Error(
          Errc::unsupported,
          "connect: this build of baton has no ZooKeeper store; build it with -DBATON_WITH_ZK=ON");
#endif
    case StoreKind::etcd:
#ifdef BATON_WITH_ETCD
      return etcd::make_backend(url, options);
#else
      return Error(
          Errc::unsupported,
          "connect: this build of baton has no etcd store; build it with -DBATON_WITH_ETCD=ON");
#endif
  }
  return Error(Errc::invalid_argument, "connect: unknown store");
}

Result<std::unique_ptr<Backend>> make_backend(const EtcdChannel& channel,
                                              const BackendOptions& options) {
#ifdef BATON_WITH_ETCD
  if (!options.tls.ca_file.empty() || !options.tls.cert_file.empty() ||
      !options.tls.key_file.empty()) {
    return Error(Errc::invalid_argument,
                 "connect: TLS files are set, but the program has already made the channel; leave "
                 "ClientOptions::tls empty");
  }
  return etcd::make_backend(channel.channel(), channel.root(), options);
#else
  static_cast<void>(channel);
  static_cast<void>(options);
  return Error(
      Errc::unsupported,
      "connect: this build of baton has no etcd store; build it with -DBATON_WITH_ETCD=ON");
#endif
}

template <class Place>
Result<std::shared_ptr<internal::ClientImpl>> open_client(const Place& place, ClientOptions options,
                                                          std::uint64_t token_base) {
  auto checked = internal::check_options(options);
  if (!checked) return checked.error();
  auto log = std::make_shared<internal::LogQueue>(options.log);
  checked->log = internal::log_to(log);
  auto backend = make_backend(place, *checked);
  if (!backend) return backend.error();
  return internal::ClientImpl::open(std::move(backend).value(), std::move(options), std::move(log),
                                    token_base);
}

template <class F>
Result<Client> guarded(F&& open) noexcept {
  try {
    return open();
  } catch (const Error& e) {
    return e;
  } catch (const std::exception& e) {
    // The process has no threads, descriptors or memory left. Nothing stays open.
    return Error(Errc::connection_failed, std::string("connect: ") + e.what());
  }
}

}  // namespace

Result<Client> Client::try_connect(std::string_view url, ClientOptions options) noexcept {
  return guarded([&]() -> Result<Client> {
    auto parsed = internal::parse_url(url);
    if (!parsed) return parsed.error();
    auto client = open_client(*parsed, std::move(options), parsed->token_base);
    if (!client) return client.error();
    return Client(std::move(client).value());
  });
}

Result<Client> Client::try_connect(const EtcdChannel& channel, ClientOptions options) noexcept {
  return guarded([&]() -> Result<Client> {
    // The same check as for the root of a URL.
    std::string_view root = channel.root();
    const auto token_base = internal::take_token_base("channel", root);
    if (!token_base) return token_base.error();
    if (!root.empty() &&
        (root.front() != '/' || !internal::parse_lock_name(root.substr(1)).has_value())) {
      return Error(
          Errc::invalid_argument,
          "connect: the root must be \"\", or \"/\" and segments that are legal in a lock name");
    }
    auto client = open_client(EtcdChannel(channel.channel(), std::string(root)), std::move(options),
                              *token_base);
    if (!client) return client.error();
    return Client(std::move(client).value());
  });
}

}  // namespace baton
