// SessionParts: what a session is made of and how it is set up.
#pragma once

#include "common/base/loop.h"
#include "common/seam/session.h"
#include "zk/transport.h"
#include "zk/watches.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace baton::zk {

struct SessionParts {
  Loop* loop;
  // Creates a transport, for this session and for further sessions that only watch.
  std::function<std::unique_ptr<Transport>(TransportListener&)> make_transport;
  std::string root;       // "" or "/app"
  std::string client_id;  // the prefix of our entries' names
  std::string label;
  bool permanent_parents = false;
  std::size_t watch_budget = Watches::kBudget;
  std::chrono::milliseconds patience{60'000};  // for callers without a deadline
  // Without a root, list() also reads the trees of all other programs on the ensemble. It fails
  // after this many directories without an entry.
  std::size_t most_strange = 10'000;
  std::function<void(LogLevel, std::string_view)> log;
};

}  // namespace baton::zk
