#include <baton/client.h>

#include "common/client/client_impl.h"
#include "common/seam/lock_name.h"
#include "common/client/mutex_impl.h"
#include "common/seam/token_base.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace baton::internal {

namespace {

// Whether the text is UTF-8 without C1 control characters. The caller checks ASCII controls.
bool valid_utf8(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const std::size_t length = c < 0x80         ? 1
                               : (c >> 5) == 6  ? 2
                               : (c >> 4) == 14 ? 3
                               : (c >> 3) == 30 ? 4
                                                : 0;
    if (length == 0 || i + length > text.size()) return false;
    std::uint32_t code = length == 1 ? c : c & (0x7fU >> length);
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next >> 6) != 2) return false;
      code = code << 6 | (next & 0x3fU);
    }
    constexpr std::array<std::uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kSmallest[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
      return false;
    // C1 controls: U+009B begins an escape sequence on many terminals.
    if (code >= 0x80 && code < 0xa0) return false;
    i += length;
  }
  return true;
}

std::string default_label() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return std::string(host.data()).substr(0, 200) + ":" + std::to_string(getpid());
}

Error bad_option(const std::string& what) {
  return {Errc::invalid_argument, "client options: " + what};
}

}  // namespace

Result<BackendOptions> check_options(const ClientOptions& options) {
  using namespace std::chrono_literals;
  if (options.session_timeout < 1s || options.session_timeout > 24h) {
    return bad_option("session_timeout must be 1 s to 1 day");
  }
  if (options.connect_timeout < 1ms || options.connect_timeout > 1h) {
    return bad_option("connect_timeout must be 1 ms to 1 hour");
  }
  if (options.label.size() > 256) return bad_option("label has more than 256 bytes");
  if (!valid_utf8(options.label))
    return bad_option("label is not UTF-8, or has a control character");
  const bool control = std::any_of(options.label.begin(), options.label.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
  if (control) return bad_option("label has a control byte");
  if (!options.credentials.password_file.empty() && !options.credentials.password_env.empty()) {
    return bad_option("password_file and password_env are both set; set only one of them");
  }
  if (options.tls.cert_file.empty() != options.tls.key_file.empty()) {
    return bad_option("tls.cert_file and tls.key_file go together");
  }
  BackendOptions checked;
  checked.session_timeout = options.session_timeout;
  checked.connect_timeout = options.connect_timeout;
  checked.label = options.label.empty() ? default_label() : options.label;
  checked.tls = options.tls;
  checked.credentials = options.credentials;
  checked.zookeeper = options.zookeeper;
  return checked;
}

}  // namespace baton::internal

namespace baton {

using internal::Answer;
using internal::Engine;

Client::Client(std::shared_ptr<internal::ClientImpl> impl) noexcept : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&& other) noexcept {
  if (this != &other) {
    close();
    impl_ = std::exchange(other.impl_, nullptr);
  }
  return *this;
}
Client::~Client() { close(); }

Client Client::connect(std::string_view url, ClientOptions options) {
  return try_connect(url, std::move(options)).value();
}
Client Client::connect(const EtcdChannel& channel, ClientOptions options) {
  return try_connect(channel, std::move(options)).value();
}

void Client::close() noexcept {
  if (impl_) impl_->close();
}

DistributedMutex Client::mutex(std::string_view name, MutexOptions) {
  auto parsed = internal::parse_lock_name(name).value();
  if (!impl_) throw Error(Errc::closed, "this Client was moved from");
  return DistributedMutex(std::make_shared<internal::MutexImpl>(impl_, std::move(parsed)));
}

namespace {

// Runs the request on the session; waits for a session if there is none. A request that was under
// way when its session ended is sent again: inspect, list and evict may be sent twice.
template <class T, class F>
T ask_session(const std::shared_ptr<internal::ClientImpl>& impl, const std::string& what,
              const F& f) {
  using std::chrono::milliseconds;
  if (!impl) throw Error(Errc::closed, what + ": this Client was moved from");
  const internal::Clock& clock = impl->clock();
  const auto timeout = impl->connect_timeout();
  const internal::Time until = clock.now() + timeout;
  // Stop waiting for a session a little before the timeout, so that the error can say why there is
  // no session. On virtual time do not wait at all: it does not pass during this call.
  const internal::Time patience =
      clock.real() ? until - std::min<internal::Nanos>(timeout / 10, milliseconds(20))
                   : clock.now();
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - clock.now());
    auto result = impl->ask<T>(
        what, std::max(left, milliseconds(0)),
        [f, what, patience, until](Engine& engine, Answer<T> answer) {
          engine.with_session(patience, [f, what, until, answer = std::move(answer)](
                                            const Result<internal::Session*>& session) mutable {
            if (session) {
              (*session)->wanted_until(until);
              f(**session, std::move(answer));
            } else {
              answer(Error(session.error().errc(), what + ": " + session.error().what()));
            }
          });
        },
        false);  // not brief: it may concern thousands of entries
    const bool again = !result && result.error().errc() == Errc::session_expired && clock.real() &&
                       clock.now() < patience;
    if (!again) return std::move(result).value();
  }
}

}  // namespace

LockSnapshot Client::inspect(std::string_view name) {
  auto parsed = internal::parse_lock_name(name).value();
  auto snapshot =
      ask_session<LockSnapshot>(impl_, "inspect \"" + parsed.text() + "\"",
                                [parsed](internal::Session& session, Answer<LockSnapshot> answer) {
                                  session.inspect(parsed, std::move(answer));
                                });
  for (Entry& entry : snapshot.entries) {
    entry.token = internal::add_token_base(impl_->token_base(), entry.token).value();
  }
  return snapshot;
}

std::vector<std::string> Client::list(std::string_view prefix) {
  auto parsed = internal::parse_name_prefix(prefix).value();
  return ask_session<std::vector<std::string>>(
      impl_, "list", [parsed](internal::Session& session, Answer<std::vector<std::string>> answer) {
        session.list(parsed, std::move(answer));
      });
}

bool Client::evict(std::string_view name, std::string_view entry_id) {
  auto parsed = internal::parse_lock_name(name).value();
  if (entry_id.empty() || entry_id.size() > 500) {
    throw Error(Errc::invalid_argument, "evict \"" + parsed.text() + "\": not an entry id");
  }
  return ask_session<bool>(
      impl_, "evict from \"" + parsed.text() + "\"",
      [parsed, id = std::string(entry_id)](internal::Session& session, Answer<bool> answer) {
        session.evict(parsed, id, std::move(answer));
      });
}

SessionInfo Client::session() const { return impl_ ? impl_->info() : SessionInfo{}; }

}  // namespace baton
