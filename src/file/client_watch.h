// ClientWatch: reports when another client dies.
#pragma once

#include "common/base/fork_guard.h"
#include "common/seam/session.h"
#include "common/base/lifetime.h"
#include "common/base/thread_loop.h"
#include "common/base/unique_fd.h"
#include "file/liveness.h"

#include <cstdint>
#include <functional>
#include <unordered_map>

namespace baton::file {

// Uses one inotify instance with one watch per client, on the client's liveness file. The instance
// is created when it is first needed, because a user has only 128 of them. Without inotify, tests
// every 20 ms whether the watched clients live.
class ClientWatch {
 public:
  using Log = std::function<void(LogLevel, std::string_view)>;

  // own: its descriptor is moved above the inotify's (see Liveness::move_above). on_dead runs on
  // the strand, never inside add().
  ClientWatch(ThreadLoop& loop, const StoreDir& store, Liveness& own, Log log,
              std::function<void(ClientId)> on_dead);
  ~ClientWatch();

  void add(ClientId client);     // counted; a client that is already dead is reported, too
  void remove(ClientId client);  // no report for it once the count is 0
  void stop();                   // no reports after this

 private:
  struct Watched {
    int users = 0;
    int descriptor = -1;  // of the inotify watch; -1: none
    int tests_left = 0;   // > 0: a test is under way
  };

  bool have_inotify();
  void watch_file(ClientId client, Watched& watched);
  void read_events();
  void begin_tests(ClientId client);
  void test(ClientId client);
  void report(ClientId client);
  void forget(ClientId client);
  void forget_unused();
  void arm_fallback();
  void look_at_all();
  void fall_back(int errnum);

  ThreadLoop& loop_;
  const StoreDir& store_;
  Liveness& own_;
  Log log_;
  std::function<void(ClientId)> on_dead_;
  const std::uint64_t fork_generation_ = fork_generation();
  UniqueFd inotify_;
  bool no_inotify_ = false;
  bool fallback_armed_ = false;
  std::unordered_map<ClientId, Watched> clients_;
  std::unordered_map<int, ClientId> by_descriptor_;
  Lifetime lifetime_;
};

}  // namespace baton::file
