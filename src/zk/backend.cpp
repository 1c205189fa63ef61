#include "zk/backend.h"

#include "common/base/secret.h"
#include "common/base/thread_loop.h"
#include "common/seam/session_opener.h"
#include "zk/client_handle.h"
#include "zk/log.h"
#include "zk/silent_server_probe.h"
#include "zk/session.h"

#include <algorithm>
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
              [log = options.log](std::string_view text) { log(LogLevel::error, text); }),
        opener_(loop_, options_, rules()) {}
  ~Backend() override { stop(); }

  Loop& loop() noexcept override { return loop_; }
  std::string where() const override { return "zk " + address_.hosts + root_; }
  void stop() noexcept override {
    const bool inside = loop_.on_thread();
    loop_.stop();
    if (inside) return;
    opener_.destroy_session();
    scout_.reset();
  }

  void open(SessionListener& listener, Answer<std::unique_ptr<internal::Session>> answer) override {
    listener_ = &listener;
    silent_.clear();
    forget_complaint();
    opener_.open(make_session(address_.hosts), std::move(answer));
    loop_.cancel(scout_timer_);
    if (servers_.size() < 2) return;
    // Early enough to leave more than half of the time to the servers that answer.
    const auto slow = std::min(opener_.patience() / 8, kSlow);
    scout_timer_ =
        loop_.at(loop_.now() + slow, [this, number = opener_.number(), limit = slow * 2] {
          if (opener_.waits(number)) find_silent(limit);
        });
  }

 private:
  SessionOpener::Rules rules() {
    SessionOpener::Rules rules;
    rules.where = [this] { return where(); };
    rules.silence = [this] { return Error(Errc::connection_failed, silence()); };
    rules.keeps_trying = [](const Error&) { return false; };
    rules.finished = [this] { loop_.cancel(scout_timer_); };
    return rules;
  }

  // Starts to connect to these hosts.
  SessionOpener::Make make_session(const std::string& hosts) {
    return [this, hosts](Answer<Done> opened) {
      return std::make_unique<Session>(parts(hosts), *listener_, std::move(opened));
    };
  }

  // Opening takes longer than usual. The C client may wait for a server that accepts connections
  // and stays silent; it leaves such a server only after two thirds of the session timeout.
  void find_silent(milliseconds limit) {
    if (!address_.tls.ca_file.empty()) return;
    scout_ = std::make_unique<SilentServerProbe>(
        loop_, servers_, limit, [this, number = opener_.number()](const ProbeResult& silence) {
          if (opener_.waits(number)) leave_out(silence);
        });
  }

  // The session that is being opened has no entries yet, so it can be replaced by one that knows
  // only the servers that are not silent. That session uses only these; the next session may use
  // all servers again.
  void leave_out(const ProbeResult& silence) {
    const auto& silent = silence.silent;
    if (silent.empty()) return;
    if (opener_.session().info().state == SessionState::connected)
      return;  // it has found another server
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
    opener_.replace(make_session(host_list(rest)));
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

  const Address address_;
  const std::vector<Endpoint> servers_;
  const std::string root_;
  const BackendOptions options_;
  const std::string client_id_;
  ThreadLoop loop_;
  TimerId scout_timer_ = TimerId::none;
  SessionListener* listener_ = nullptr;
  std::string silent_;  // servers that the session being opened does not use
  SessionOpener opener_;
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
