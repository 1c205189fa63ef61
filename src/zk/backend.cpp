#include "zk/backend.h"

#include "common/base/secret.h"
#include "common/base/thread_loop.h"
#include "zk/client_handle.h"
#include "zk/log.h"
#include "zk/silent_server_probe.h"
#include "zk/session.h"

#include <algorithm>
#include <exception>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace baton::zk {

namespace {

using std::chrono::milliseconds;

// If a session is not open after this time, the backend looks for silent servers.
constexpr milliseconds kSlow{500};

std::string host_list(const std::vector<Endpoint>& servers) {
  std::string hosts;
  for (const auto& endpoint : servers) {
    if (!hosts.empty()) hosts += ",";
    hosts += endpoint.host + ":" + std::to_string(endpoint.port);  // split at the last colon
  }
  return hosts;
}

std::uint64_t random_bits() {
  std::random_device source;
  return std::uint64_t{source()} << 32 | source();
}

class Backend final : public internal::Backend {
 public:
  Backend(Address address, std::vector<Endpoint> servers, std::string root,
          const BackendOptions& options)
      : address_(std::move(address)),
        servers_(std::move(servers)),
        root_(std::move(root)),
        options_(options),
        client_id_(format_client_id(random_bits())),
        loop_(real_clock(),
              [log = options.log](std::string_view text) { log(LogLevel::error, text); }) {}
  ~Backend() override { stop(); }

  Loop& loop() noexcept override { return loop_; }
  std::string where() const override { return "zk " + address_.hosts + root_; }
  void stop() noexcept override {
    const bool inside = loop_.on_thread();
    loop_.stop();
    if (inside) return;
    opening_.reset();  // nothing takes the session any more
    scout_.reset();
  }

  void open(SessionListener& listener, Answer<std::unique_ptr<internal::Session>> answer) override {
    const std::uint64_t number = ++opens_;
    listener_ = &listener;
    answer_ = std::move(answer);
    silent_.clear();
    forget_complaint();
    if (!begin(address_.hosts)) return;
    // The C client would retry without end. This timeout tells the caller the reason.
    const auto patience = std::clamp(options_.connect_timeout * 4 / 5, milliseconds(1),
                                     std::max(options_.session_timeout, milliseconds(5'000)));
    loop_.cancel(timer_);
    timer_ = loop_.at(loop_.now() + patience, [this, number] {
      if (number == opens_) finish(Error(Errc::connection_failed, silence()));
    });
    loop_.cancel(scout_timer_);
    if (servers_.size() < 2) return;
    // Early enough to leave more than half of the time to the servers that answer.
    const auto slow = std::min(patience / 8, kSlow);
    scout_timer_ = loop_.at(loop_.now() + slow, [this, number, limit = slow * 2] {
      if (number == opens_) find_silent(limit);
    });
  }

 private:
  // Starts to connect to these hosts. False: it cannot, and the error will be delivered.
  bool begin(const std::string& hosts) {
    const std::uint64_t number = opens_;
    const std::uint64_t attempt = ++attempts_;
    try {
      opening_ = std::make_unique<Session>(
          parts(hosts), *listener_, [this, number, attempt](Result<Done> opened) {
            // Deferred: finish() may destroy the session, which must not happen inside its own
            // call.
            loop_.defer([this, number, attempt, opened = std::move(opened)]() mutable {
              if (number == opens_ && attempt == attempts_) finish(std::move(opened));
            });
          });
    } catch (const std::exception& e) {
      loop_.defer([this, number, error = Error(Errc::connection_failed, e.what())] {
        if (number == opens_) finish(error);
      });
      return false;
    }
    return true;
  }

  // Opening takes longer than usual. The C client may wait for a server that accepts connections
  // and stays silent; it leaves such a server only after two thirds of the session timeout.
  void find_silent(milliseconds limit) {
    if (!answer_ || !address_.tls.ca_file.empty()) return;
    scout_ = std::make_unique<SilentServerProbe>(
        loop_, servers_, limit, [this, number = opens_](const ProbeResult& silence) {
          if (number == opens_ && answer_) leave_out(silence);
        });
  }

  // The session that is being opened has no entries yet, so it can be replaced by one that knows
  // only the servers that are not silent. That session uses only these; the next session may use
  // all servers again.
  void leave_out(const ProbeResult& silence) {
    const auto& silent = silence.silent;
    if (silent.empty()) return;
    if (opening_->info().state == SessionState::connected) return;  // it has found another server
    std::vector<Endpoint> rest;
    std::vector<Endpoint> left_out;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      (silent.contains(i) ? left_out : rest).push_back(servers_[i]);
    }
    silent_ = host_list(left_out);
    // If no server answers, all servers stay in the list: a silent server may only be paused, and a
    // server that refuses is not better.
    const bool narrow = !silence.answered.empty();
    options_.log(LogLevel::warning,
                 where() + ": no answer from " + silent_ +
                     (narrow ? "; the new session does not use it. Check that server"
                             : ", and no other server answers. Check the servers"));
    if (!narrow) return;
    begin(host_list(rest));
  }

  SessionParts parts(const std::string& hosts) {
    SessionParts parts;
    parts.loop = &loop_;
    parts.make_transport = [this,
                            hosts](TransportListener& listener) -> std::unique_ptr<Transport> {
      Address address = address_;
      address.hosts = hosts;
      return std::make_unique<ClientHandle>(loop_, address, listener);
    };
    parts.root = root_;
    parts.client_id = client_id_;
    parts.label = options_.label;
    parts.permanent_parents = options_.zookeeper.persistent_parents;
    parts.patience = options_.connect_timeout;
    parts.log = options_.log;
    return parts;
  }

  std::string silence() const {
    std::string text = "no server of " + address_.hosts + " accepted a session";
    if (!silent_.empty()) text += "; no answer from " + silent_;
    const std::string complaint = last_complaint();
    return complaint.empty() ? text : text + "; last log line of the C client: " + complaint;
  }

  void finish(Result<Done> opened) {
    if (!answer_) return;
    loop_.cancel(timer_);
    loop_.cancel(scout_timer_);
    auto session = std::move(opening_);
    auto answer = std::exchange(answer_, nullptr);
    if (opened && session->info().state == SessionState::closed) {
      opened = Error(Errc::connection_failed, "the session ended while it was being opened");
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
    answer(std::unique_ptr<internal::Session>(std::move(session)));
  }

  const Address address_;
  const std::vector<Endpoint> servers_;
  const std::string root_;
  const BackendOptions options_;
  const std::string client_id_;
  ThreadLoop loop_;
  std::uint64_t opens_ = 0;
  std::uint64_t attempts_ = 0;
  TimerId timer_ = TimerId::none;
  TimerId scout_timer_ = TimerId::none;
  bool told_ = false;
  SessionListener* listener_ = nullptr;
  std::string silent_;  // servers that the session being opened does not use
  Answer<std::unique_ptr<internal::Session>> answer_;
  std::unique_ptr<Session> opening_;
  std::unique_ptr<SilentServerProbe> scout_;
};

}  // namespace

Result<std::unique_ptr<internal::Backend>> make_backend(const StoreUrl& url,
                                                        const BackendOptions& options) {
  Address address;
  address.hosts = host_list(url.endpoints);
  address.timeout = options.session_timeout;
  address.tls = options.tls;
  const bool tls = !options.tls.ca_file.empty() || !options.tls.cert_file.empty();
  if (tls && !ClientHandle::has_tls()) {
    return Error(Errc::unsupported,
                 "connect: the installed ZooKeeper C client has no TLS; install a build with TLS, "
                 "or run a TLS tunnel beside this process");
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
                   "zookeeper.plaintext_auth to allow this");
    }
    auto password = read_password(options.credentials);
    if (!password) return password.error();
    address.user = options.credentials.user;
    address.password = *std::move(password);
    address.read_group = zookeeper.read_group;
  } else if (!zookeeper.read_group.empty()) {
    return Error(Errc::invalid_argument,
                 "connect: zookeeper.read_group needs credentials; without them every client may "
                 "read and write");
  }
  if (!zookeeper.read_group.empty() && zookeeper.read_group.find(':') == std::string::npos) {
    return Error(Errc::invalid_argument,
                 "connect: zookeeper.read_group is \"scheme:id\", like \"digest:ops:HASH\"");
  }
  if (url.root == "/zookeeper" || url.root.starts_with("/zookeeper/")) {
    return Error(Errc::invalid_argument,
                 "connect: /zookeeper is reserved for the servers; choose another root");
  }
  return std::unique_ptr<internal::Backend>(
      std::make_unique<Backend>(std::move(address), url.endpoints, url.root, options));
}

}  // namespace baton::zk
