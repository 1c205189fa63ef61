#include "zk/zk_backend.h"

#include "common/secret.h"
#include "common/thread_loop.h"
#include "zk/zk_handle.h"
#include "zk/zk_log.h"
#include "zk/zk_session.h"

#include <algorithm>
#include <exception>
#include <random>
#include <utility>

namespace baton::internal {

namespace {

using std::chrono::milliseconds;

std::string host_list(const StoreUrl& url) {
  std::string hosts;
  for (const auto& endpoint : url.endpoints) {
    if (!hosts.empty()) hosts += ",";
    hosts += endpoint.host + ":" + std::to_string(endpoint.port);  // split at the last colon
  }
  return hosts;
}

std::uint64_t random_bits() {
  std::random_device source;
  return std::uint64_t{source()} << 32 | source();
}

class ZkBackend final : public Backend {
 public:
  ZkBackend(ZkAddress address, std::string root, const BackendOptions& options)
      : address_(std::move(address)),
        root_(std::move(root)),
        options_(options),
        client_id_(zk_client_id(random_bits())),
        loop_(real_clock(),
              [log = options.log](std::string_view text) { log(LogLevel::error, text); }) {}
  ~ZkBackend() override { stop(); }

  Loop& loop() noexcept override { return loop_; }
  std::string where() const override { return "zk " + address_.hosts + root_; }
  void stop() noexcept override {
    const bool inside = loop_.on_thread();
    loop_.stop();
    if (!inside) opening_.reset();  // nobody takes it any more
  }

  void open(SessionListener& listener, Answer<std::unique_ptr<Session>> answer) override {
    const std::uint64_t number = ++opens_;
    answer_ = std::move(answer);
    zk_forget_complaint();
    try {
      opening_ =
          std::make_unique<ZkSession>(parts(), listener, [this, number](Result<Done> opened) {
            // Not inside the session's own call: it may be destroyed.
            loop_.defer([this, number, opened = std::move(opened)]() mutable {
              if (number == opens_) finish(std::move(opened));
            });
          });
    } catch (const std::exception& e) {
      loop_.defer([this, number, error = Error(Errc::connection_failed, e.what())]() mutable {
        if (number == opens_) finish(std::move(error));
      });
      return;
    }
    // The C client would try for ever; whoever waits should hear why.
    const auto patience = std::clamp(options_.connect_timeout * 4 / 5, milliseconds(1),
                                     std::max(options_.session_timeout, milliseconds(5'000)));
    loop_.cancel(timer_);
    timer_ = loop_.at(loop_.now() + patience, [this, number] {
      if (number == opens_) finish(Error(Errc::connection_failed, silence()));
    });
  }

 private:
  ZkSessionParts parts() {
    ZkSessionParts parts;
    parts.loop = &loop_;
    parts.make_line = [this](ZkLineListener& listener) -> std::unique_ptr<ZkLine> {
      return std::make_unique<ZkHandle>(loop_, address_, listener);
    };
    parts.root = root_;
    parts.client_id = client_id_;
    parts.label = options_.label;
    parts.permanent_parents = options_.zookeeper.persistent_parents;
    parts.log = options_.log;
    return parts;
  }

  std::string silence() const {
    std::string text = "no server of " + address_.hosts + " accepted a session";
    const std::string complaint = zk_last_complaint();
    return complaint.empty() ? text : text + "; last heard: " + complaint;
  }

  void finish(Result<Done> opened) {
    if (!answer_) return;
    loop_.cancel(timer_);
    auto session = std::move(opening_);
    auto answer = std::exchange(answer_, nullptr);
    if (opened && session->info().state == SessionState::closed) {
      opened = Error(Errc::connection_failed, "the session ended as soon as it began");
    }
    if (!opened) {
      ++opens_;
      answer(opened.error());
      return;
    }
    const auto granted = session->info().timeout;
    if (granted != options_.session_timeout && !std::exchange(told_, true)) {
      options_.log(granted > options_.session_timeout ? LogLevel::warning : LogLevel::info,
                   where() + ": asked for a session timeout of " +
                       std::to_string(options_.session_timeout.count()) +
                       " ms, the server grants " + std::to_string(granted.count()) + " ms");
    }
    answer(std::unique_ptr<Session>(std::move(session)));
  }

  const ZkAddress address_;
  const std::string root_;
  const BackendOptions options_;
  const std::string client_id_;
  ThreadLoop loop_;
  std::uint64_t opens_ = 0;
  TimerId timer_ = TimerId::none;
  bool told_ = false;
  Answer<std::unique_ptr<Session>> answer_;
  std::unique_ptr<ZkSession> opening_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_zk_backend(const StoreUrl& url,
                                                 const BackendOptions& options) {
  ZkAddress address;
  address.hosts = host_list(url);
  address.timeout = options.session_timeout;
  address.tls = options.tls;
  const bool tls = !options.tls.ca_file.empty() || !options.tls.cert_file.empty();
  if (tls && !ZkHandle::has_tls()) {
    return Error(Errc::unsupported,
                 "connect: the installed ZooKeeper C client has no TLS; use a build of it that "
                 "has, or a TLS tunnel beside this process");
  }
  if (tls && (options.tls.ca_file.empty() || options.tls.cert_file.empty())) {
    return Error(Errc::invalid_argument,
                 "connect: ZooKeeper with TLS needs tls.ca_file, tls.cert_file and tls.key_file");
  }
  const auto& zookeeper = options.zookeeper;
  if (!options.credentials.user.empty()) {
    if (!tls && !zookeeper.plaintext_auth) {
      return Error(Errc::invalid_argument,
                   "connect: the password would go over the network in the clear; set "
                   "zookeeper.plaintext_auth if the network may see it");
    }
    auto password = read_password(options.credentials);
    if (!password) return password.error();
    address.user = options.credentials.user;
    address.password = *std::move(password);
    address.read_group = zookeeper.read_group;
  } else if (!zookeeper.read_group.empty()) {
    return Error(Errc::invalid_argument,
                 "connect: zookeeper.read_group needs credentials; without them everybody may "
                 "read and write");
  }
  if (!zookeeper.read_group.empty() && zookeeper.read_group.find(':') == std::string::npos) {
    return Error(Errc::invalid_argument,
                 "connect: zookeeper.read_group is \"scheme:id\", like \"digest:ops:HASH\"");
  }
  if (url.root == "/zookeeper" || url.root.starts_with("/zookeeper/")) {
    return Error(Errc::invalid_argument, "connect: /zookeeper belongs to the servers");
  }
  return std::unique_ptr<Backend>(
      std::make_unique<ZkBackend>(std::move(address), url.root, options));
}

}  // namespace baton::internal
