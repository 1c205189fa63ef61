// From a URL to a client: the only room that knows all backends.
#include <baton/client.h>

#include "common/client_impl.h"
#include "common/url.h"
#include "file/file_backend.h"
#include "memory/memory_backend.h"
#ifdef BATON_WITH_ZK
#include "zk/zk_backend.h"
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
      return internal::make_memory_backend(url.memory_name, options);
    case StoreKind::file:
      return internal::make_file_backend(url.directory, options);
    case StoreKind::zk:
#ifdef BATON_WITH_ZK
      return internal::make_zk_backend(url, options);
#else
      return Error(Errc::unsupported, "connect: this build of baton has no ZooKeeper store");
#endif
    case StoreKind::etcd:
      return Error(Errc::unsupported, "connect: this build of baton has no etcd store");
  }
  return Error(Errc::invalid_argument, "connect: unknown store");
}

Result<std::shared_ptr<internal::ClientImpl>> open_client(std::string_view url,
                                                          ClientOptions options) {
  auto parsed = internal::parse_url(url);
  if (!parsed) return parsed.error();
  auto checked = internal::check_options(options);
  if (!checked) return checked.error();
  auto log = std::make_shared<internal::LogQueue>(options.log);
  checked->log = internal::log_to(log);
  auto backend = make_backend(*parsed, *checked);
  if (!backend) return backend.error();
  return internal::ClientImpl::open(std::move(backend).value(), std::move(options), std::move(log));
}

}  // namespace

Result<Client> Client::try_connect(std::string_view url, ClientOptions options) noexcept {
  try {
    auto client = open_client(url, std::move(options));
    if (!client) return client.error();
    return Client(std::move(client).value());
  } catch (const Error& e) {
    return e;
  } catch (const std::exception& e) {
    // No threads, no descriptors, no memory: whatever it was, nothing was opened.
    return Error(Errc::connection_failed, std::string("connect: ") + e.what());
  }
}

}  // namespace baton
