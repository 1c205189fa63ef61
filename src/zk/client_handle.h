// ClientHandle: implements Transport with the official C client. Owns one zhandle_t with its two
// threads.
#pragma once

#include "common/base/loop.h"
#include "zk/transport.h"

#include <baton/options.h>

#include <chrono>
#include <memory>
#include <string>

namespace baton::zk {

struct Address {
  std::string hosts;  // "h1:2181,h2:2181"
  std::chrono::milliseconds timeout{};
  std::string user;  // not empty: digest authentication; only this user has access
  std::string password;
  std::string read_group;  // "scheme:id" that may also read; needs user
  TlsOptions tls;
};

class ClientHandle final : public Transport {
 public:
  // Starts to connect in the background, because name resolution blocks.
  ClientHandle(Loop& loop, const Address& address, TransportListener& listener);
  ~ClientHandle() override;  // closes the session in the background

  void send(const Request& request, ReplyHandler answer) override;
  bool provably_disconnected() const noexcept override;
  void close(Task closed) override;

  // Whether the installed C client supports TLS.
  static bool has_tls() noexcept;

 private:
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace baton::zk
