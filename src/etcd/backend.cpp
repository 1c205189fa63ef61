#include "etcd/backend.h"

#include "common/base/fork_guard.h"
#include "common/base/secret.h"
#include "common/base/signal_shield.h"
#include "etcd/channels.h"
#include "etcd/completion_loop.h"
#include "etcd/session.h"
#include "etcd/tls.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
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
        channels_(loop_, std::move(endpoints)) {
    diagnosis_->backend = this;
  }
  ~Backend() override { stop(); }

  Loop& loop() noexcept override { return loop_; }
  std::string where() const override { return address_.where; }
  void stop() noexcept override {
    {
      const std::lock_guard guard(diagnosis_->mutex);
      diagnosis_->backend = nullptr;
    }
    const bool inside = loop_.on_thread();
    loop_.stop();
    if (!inside) opening_.reset();  // nothing takes the session any more
  }

  void open(SessionListener& listener, Answer<std::unique_ptr<internal::Session>> answer) override {
    const std::uint64_t number = ++opens_;
    answer_ = std::move(answer);
    trouble_.reset();
    opening_ = std::make_unique<Session>(parts(), listener, [this, number](Result<Done> opened) {
      // Deferred: tried() may destroy the session, which must not happen inside its own call.
      loop_.defer([this, number, opened = std::move(opened)]() mutable {
        if (number == opens_) tried(std::move(opened));
      });
    });
    // The session would retry without end. This timeout tells the caller the reason.
    const auto patience = std::clamp(options_.connect_timeout * 4 / 5, milliseconds(1),
                                     std::max(options_.session_timeout, milliseconds(5'000)));
    loop_.cancel(timer_);
    timer_ = loop_.at(loop_.now() + patience, [this, number] {
      if (number != opens_) return;
      finish(trouble_ ? *trouble_ : Error(Errc::connection_failed, silence()));
    });
  }

 private:
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

  std::string silence() const { return "no server of " + address_.where + " answered"; }

  void tried(Result<Done> opened) {
    // A session that has ended (another cluster answered) does not retry: report the failure, so
    // that the caller opens another session.
    const bool over = opening_ == nullptr || opening_->info().state == SessionState::closed;
    if (opened && over)
      opened = Error(Errc::connection_failed, "the session ended while it was being opened");
    if (opened || over || !transient(opened.error())) {
      finish(opened);
      return;
    }
    trouble_ = opened.error();
    if (!address_.secure &&
        std::string_view(trouble_->what()).find("Socket closed") != std::string_view::npos) {
      trouble_ = Error(trouble_->errc(),
                       std::string(trouble_->what()) + "; if the port speaks TLS, use etcds://");
    }
    ask_why();
  }

  // gRPC does not report why a TLS handshake failed. Find out once per open(), on another thread
  // because it blocks.
  void ask_why() {
    if (!address_.secure || address_.hosts.empty() || asked_ == opens_) return;
    asked_ = opens_;
    const std::uint64_t number = opens_;
    const SignalShield shield;
    // The thread may outlive this backend. Then diagnosis_->backend is null, and the result is
    // dropped.
    std::thread([this_box = diagnosis_, host = address_.hosts.at(cluster_state_.current),
                 tls = address_.tls, number] {
      auto text = find_tls_trouble(host, tls, milliseconds(1'000));
      const std::lock_guard guard(this_box->mutex);
      if (this_box->backend == nullptr) return;  // stopped meanwhile
      this_box->backend->loop_.post(
          [backend = this_box->backend, number, text = std::move(text)]() mutable {
            backend->diagnosed(number, text);
          });
    }).detach();
  }

  void diagnosed(std::uint64_t number, const std::string& text) {
    if (number != opens_ || !answer_ || text.empty()) return;
    // End this open() with the exact reason. The caller may retry: certificates can be replaced
    // meanwhile.
    finish(Error(Errc::connection_failed,
                 "connect to " + channels_.endpoint(cluster_state_.current) + ": " + text));
  }

  void finish(const Result<Done>& opened) {
    if (!answer_) return;
    loop_.cancel(timer_);
    auto session = std::move(opening_);
    auto answer = std::exchange(answer_, nullptr);
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
    answer(std::unique_ptr<internal::Session>(std::move(session)));
  }

  struct Diagnosis {
    std::mutex mutex;
    Backend* backend = nullptr;
  };

  const Address address_;
  const BackendOptions options_;
  CompletionLoop loop_;
  Channels channels_;
  ClusterState cluster_state_;
  std::uint64_t opens_ = 0;
  std::uint64_t asked_ = 0;
  TimerId timer_ = TimerId::none;
  bool told_ = false;
  std::optional<Error> trouble_;
  const std::shared_ptr<Diagnosis> diagnosis_ = std::make_shared<Diagnosis>();
  Answer<std::unique_ptr<internal::Session>> answer_;
  std::unique_ptr<Session> opening_;
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
