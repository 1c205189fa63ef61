#include "etcd/backend.h"

#include "common/base/fork_guard.h"
#include "common/base/mutex.h"
#include "common/base/secret.h"
#include "common/base/signal_shield.h"
#include "common/seam/session_opener.h"
#include "etcd/channels.h"
#include "etcd/completion_loop.h"
#include "etcd/session.h"
#include "etcd/tls.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>

namespace baton::etcd {

namespace {

using std::chrono::milliseconds;

// gRPC does not survive a fork: in the child its threads do not exist, and its mutexes may be
// locked permanently.
std::optional<Error> refuse_after_fork() {
  static std::atomic<std::uint64_t> first{0};
  std::uint64_t none = 0;
  const std::uint64_t now = fork_generation();
  if (first.compare_exchange_strong(none, now) || none == now) return std::nullopt;
  return Error(Errc::unsupported,
               "connect: this process is a fork of one that has used etcd, and gRPC does not "
               "survive a fork; call exec first");
}

struct Address {
  std::string where;  // for messages
  std::string root;
  std::vector<Endpoint> hosts;  // empty: the program passed its own channel
  TlsMaterial tls;
  bool secure = false;
  std::string user;
  std::string password;
};

class Backend final : public internal::Backend {
 public:
  Backend(Address address, std::vector<ChannelEndpoint> endpoints, const BackendOptions& options)
      : address_(std::move(address)),
        options_(options),
        loop_([log = options.log](std::string_view text) { log(LogLevel::error, text); }),
        channels_(loop_, std::move(endpoints)),
        opener_(loop_, options_, rules()) {
    diagnosis_->backend = this;
  }
  ~Backend() override { stop(); }

  Loop& loop() noexcept override { return loop_; }
  std::string where() const override { return address_.where; }
  void stop() noexcept override {
    {
      const MutexLock guard(diagnosis_->mutex);
      diagnosis_->backend = nullptr;
    }
    const bool inside = loop_.on_thread();
    loop_.stop();
    if (!inside) opener_.destroy_session();
  }

  void open(SessionListener& listener, Answer<std::unique_ptr<internal::Session>> answer) override {
    trouble_.reset();
    opener_.open(
        [this, &listener](Answer<Done> opened) {
          return std::make_unique<Session>(parts(), listener, std::move(opened));
        },
        std::move(answer));
  }

 private:
  SessionOpener::Rules rules() {
    SessionOpener::Rules rules;
    rules.where = [this] { return where(); };
    rules.silence = [this] {
      return trouble_.value_or(
          Error(Errc::connection_failed, "no server of " + address_.where + " answered"));
    };
    rules.keeps_trying = [this](const Error& trouble) { return keeps_trying(trouble); };
    rules.finished = [] {};
    return rules;
  }

  SessionParts parts() {
    SessionParts parts;
    parts.link.loop = &loop_;
    parts.link.transport = &channels_;
    parts.link.cluster_state = &cluster_state_;
    parts.link.user = address_.user;
    parts.link.password = address_.password;
    parts.link.try_timeout =
        std::clamp(options_.session_timeout / 6, milliseconds(500), milliseconds(2'000));
    parts.link.log = options_.log;
    parts.root = address_.root;
    parts.label = options_.label;
    parts.session_timeout = options_.session_timeout;
    parts.patience = options_.connect_timeout;
    return parts;
  }

  // A session that could not reach its server tries again by itself.
  bool keeps_trying(const Error& trouble) {
    if (!transient(trouble)) return false;
    trouble_ = trouble;
    if (!address_.secure &&
        std::string_view(trouble_->what()).find("Socket closed") != std::string_view::npos) {
      trouble_ = Error(trouble_->errc(),
                       std::string(trouble_->what()) + "; if the port speaks TLS, use etcds://");
    }
    ask_why();
    return true;
  }

  // gRPC does not report why a TLS handshake failed. Find out once per open(), on another thread
  // because it blocks.
  void ask_why() {
    if (!address_.secure || address_.hosts.empty() || asked_ == opener_.number()) return;
    const std::uint64_t number = asked_ = opener_.number();
    const SignalShield shield;
    // The thread may outlive this backend. Then diagnosis_->backend is null, and the result is
    // dropped.
    std::thread([this_box = diagnosis_, host = address_.hosts.at(cluster_state_.current),
                 tls = address_.tls, number] {
      auto text = find_tls_trouble(host, tls, milliseconds(1'000));
      const MutexLock guard(this_box->mutex);
      if (this_box->backend == nullptr) return;  // stopped meanwhile
      this_box->backend->loop_.post(
          [backend = this_box->backend, number, text = std::move(text)]() mutable {
            backend->diagnosed(number, text);
          });
    }).detach();
  }

  void diagnosed(std::uint64_t number, const std::string& text) {
    if (!opener_.waits(number) || text.empty()) return;
    // End this open() with the exact reason. The caller may retry: certificates can be replaced
    // meanwhile.
    opener_.fail(Error(Errc::connection_failed,
                       "connect to " + channels_.endpoint(cluster_state_.current) + ": " + text));
  }

  struct Diagnosis {
    Mutex mutex;
    Backend* backend BATON_GUARDED_BY(mutex) = nullptr;
  };

  const Address address_;
  const BackendOptions options_;
  CompletionLoop loop_;
  Channels channels_;
  ClusterState cluster_state_;
  std::uint64_t asked_ = 0;       // the last open() for which find_tls_trouble() was started
  std::optional<Error> trouble_;  // why the session that is being opened is not open yet
  const std::shared_ptr<Diagnosis> diagnosis_ = std::make_shared<Diagnosis>();
  SessionOpener opener_;
};

// Copies the user and the password, if there are any, to the address.
std::optional<Error> take_credentials(const BackendOptions& options, Address& address) {
  if (options.credentials.user.empty()) return std::nullopt;
  auto password = read_password(options.credentials);
  if (!password) return password.error();
  address.user = options.credentials.user;
  address.password = *std::move(password);
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<internal::Backend>> make_backend(const StoreUrl& url,
                                                        const BackendOptions& options) {
  if (auto refused = refuse_after_fork()) return *std::move(refused);
  Address address;
  auto tls = load_tls(url, options.tls);
  if (!tls) return tls.error();
  address.tls = *std::move(tls);
  address.secure = url.tls;
  if (auto error = take_credentials(options, address)) return *std::move(error);
  if (!url.tls && !address.user.empty()) {
    options.log(LogLevel::warning, "etcd:// sends the password of \"" + address.user +
                                       "\" in the clear; use etcds:// where others can listen");
  }
  auto endpoints = make_channel_endpoints(url.endpoints, address.tls.credentials);
  address.hosts = url.endpoints;
  address.root = url.root;
  address.where = url.tls ? "etcds " : "etcd ";
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    address.where += (i == 0 ? "" : ",") + endpoints[i].name;
  }
  address.where += url.root;
  return std::unique_ptr<internal::Backend>(
      std::make_unique<Backend>(std::move(address), std::move(endpoints), options));
}

Result<std::unique_ptr<internal::Backend>> make_backend(std::shared_ptr<grpc::Channel> channel,
                                                        const std::string& root,
                                                        const BackendOptions& options) {
  if (channel == nullptr) return Error(Errc::invalid_argument, "connect: the channel is null");
  if (auto refused = refuse_after_fork()) return *std::move(refused);
  Address address;
  if (auto error = take_credentials(options, address)) return *std::move(error);
  std::vector<ChannelEndpoint> endpoints;
  endpoints.push_back({"channel", std::move(channel), nullptr});
  address.root = root;
  address.where = "etcd channel" + root;
  return std::unique_ptr<internal::Backend>(
      std::make_unique<Backend>(std::move(address), std::move(endpoints), options));
}

}  // namespace baton::etcd
