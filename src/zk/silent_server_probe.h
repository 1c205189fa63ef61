// SilentServerProbe: finds servers that accept connections and then stay silent. The C client
// leaves such a server only after two thirds of the session timeout, and its API offers no way to
// make it leave sooner.
#pragma once

#include "zk/namespace.h"

#include "common/base/loop.h"
#include "common/base/unique_function.h"
#include "common/seam/url.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <set>
#include <vector>

namespace baton::zk {

// Servers by index. A server in neither set has refused or closed the connection, or has no
// address: the C client skips it by itself.
struct ProbeResult {
  std::set<std::size_t> silent;    // no address sent a byte or refused within the limit
  std::set<std::size_t> answered;  // sent at least one byte
};

// Blocks, and resolves names. Not for servers that expect TLS: they would look silent.
ProbeResult find_silent_servers(const std::vector<Endpoint>& servers,
                                std::chrono::milliseconds limit);

// Runs find_silent_servers() on its own thread. Use this class on the strand of the loop.
class SilentServerProbe {
 public:
  using Found = UniqueFunction<void(const ProbeResult& silence)>;
  // found: called once on the strand, and never inside the constructor. Not called if no thread can
  // be started.
  SilentServerProbe(Loop& loop, std::vector<Endpoint> servers, std::chrono::milliseconds limit,
                    Found found);
  ~SilentServerProbe();  // `found` is not called after this
  SilentServerProbe(const SilentServerProbe&) = delete;
  SilentServerProbe& operator=(const SilentServerProbe&) = delete;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace baton::zk
