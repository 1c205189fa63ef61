#include "file/client_watch.h"

#include <sys/inotify.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

namespace baton::file {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFallback{20};
constexpr int kTests = 8;                // at 0, 1, 3, 7, ... 127 ms after an event
constexpr std::size_t kUnusedKept = 64;  // a new watch for each hand-over would be slow

}  // namespace

ClientWatch::ClientWatch(ThreadLoop& loop, const StoreDir& store, Liveness& own, Log log,
                         std::function<void(ClientId)> on_dead)
    : loop_(loop), store_(store), own_(own), log_(std::move(log)), on_dead_(std::move(on_dead)) {}

ClientWatch::~ClientWatch() { stop(); }

void ClientWatch::stop() {
  lifetime_.end();
  // A forked child shares the epoll of its parent and must not remove the parent's descriptor.
  if (inotify_ && fork_generation_ == fork_generation()) loop_.remove_fd(inotify_.get());
  inotify_.reset();
  no_inotify_ = true;
  clients_.clear();
  by_descriptor_.clear();
}

void ClientWatch::add(ClientId client) {
  Watched& watched = clients_[client];
  ++watched.users;
  if (watched.descriptor >= 0 && watched.users > 1) return;
  if (watched.descriptor < 0) watch_file(client, watched);
  // The client may have died before the watch was added.
  if (test_liveness(store_.clients(), 'c', client) == Alive::no) {
    loop_.defer(lifetime_.guard([this, client] { report(client); }));
    return;
  }
  // Or the client is dying: it closed its file before the watch was added, so no event will come,
  // but the kernel has not dropped its lock yet. Test once more a little later.
  loop_.at(loop_.now() + milliseconds(8), lifetime_.guard([this, client] {
    if (clients_.contains(client) && test_liveness(store_.clients(), 'c', client) == Alive::no) {
      report(client);
    }
  }));
}

void ClientWatch::remove(ClientId client) {
  const auto it = clients_.find(client);
  if (it == clients_.end() || --it->second.users > 0) return;
  if (clients_.size() > kUnusedKept) forget_unused();
}

void ClientWatch::forget_unused() {
  std::vector<ClientId> unused;
  for (const auto& [client, watched] : clients_) {
    if (watched.users == 0) unused.push_back(client);
  }
  for (const ClientId client : unused) forget(client);
}

void ClientWatch::forget(ClientId client) {
  const auto it = clients_.find(client);
  if (it == clients_.end()) return;
  if (it->second.descriptor >= 0) {
    by_descriptor_.erase(it->second.descriptor);
    // Fails if the file is gone; the kernel has removed the watch then.
    ::inotify_rm_watch(inotify_.get(), it->second.descriptor);
  }
  clients_.erase(it);
}

bool ClientWatch::have_inotify() {
  if (inotify_ || no_inotify_) return static_cast<bool>(inotify_);
  UniqueFd fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!fd) {
    fall_back(errno);
    return false;
  }
  own_.move_above(fd.get());
  try {
    loop_.add_fd(fd.get(), [this] { read_events(); });
  } catch (const std::system_error& e) {
    fall_back(e.code().value());
    return false;
  }
  inotify_ = std::move(fd);
  return true;
}

void ClientWatch::fall_back(int errnum) {
  if (!no_inotify_) {
    log_(LogLevel::warning, "file " + store_.path() + ": cannot use inotify (" +
                                std::generic_category().message(errnum) +
                                "); testing every 20 ms whether other clients live. Raise "
                                "fs.inotify.max_user_instances or max_user_watches");
  }
  no_inotify_ = true;
}

void ClientWatch::watch_file(ClientId client, Watched& watched) {
  if (have_inotify()) {
    // Through the descriptor, because the directory may have been renamed since it was opened.
    const std::string path =
        "/proc/self/fd/" + std::to_string(store_.clients()) + "/" + client_file_name('c', client);
    const int descriptor = ::inotify_add_watch(
        inotify_.get(), path.c_str(), IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_DONT_FOLLOW);
    if (descriptor >= 0) {
      watched.descriptor = descriptor;
      by_descriptor_[descriptor] = client;
      return;
    }
    if (errno == ENOENT) return;  // dead; the test in add() reports it
    fall_back(errno);
  }
  arm_fallback();
}

void ClientWatch::read_events() {
  alignas(inotify_event) char buffer[4096];
  std::vector<ClientId> told;
  for (;;) {
    const ssize_t size = ::read(inotify_.get(), buffer, sizeof buffer);
    if (size <= 0) break;
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      if ((event->mask & IN_Q_OVERFLOW) != 0) {
        for (const auto& [client, watched] : clients_) told.push_back(client);
        continue;
      }
      const auto it = by_descriptor_.find(event->wd);
      if (it == by_descriptor_.end()) continue;
      told.push_back(it->second);
      if ((event->mask & IN_IGNORED) != 0) {
        if (const auto known = clients_.find(it->second); known != clients_.end()) {
          known->second.descriptor = -1;
        }
        by_descriptor_.erase(it);
      }
    }
  }
  for (const ClientId client : told) begin_tests(client);
}

void ClientWatch::begin_tests(ClientId client) {
  const auto it = clients_.find(client);
  if (it == clients_.end()) return;
  const bool under_way = it->second.tests_left > 0;
  it->second.tests_left = kTests;
  if (!under_way) test(client);
}

void ClientWatch::test(ClientId client) {
  const auto it = clients_.find(client);
  if (it == clients_.end() || it->second.tests_left <= 0) return;
  if (test_liveness(store_.clients(), 'c', client) == Alive::no) {
    report(client);
    return;
  }
  // The kernel sends the close event before it drops the lock, so a client that still seems to live
  // must be tested again.
  const int done = kTests - it->second.tests_left--;
  if (it->second.tests_left == 0) return;
  loop_.at(loop_.now() + milliseconds(1 << done),
           lifetime_.guard([this, client] { test(client); }));
}

void ClientWatch::report(ClientId client) {
  const auto it = clients_.find(client);
  if (it == clients_.end()) return;
  const bool awaited = it->second.users > 0;
  forget(client);
  if (awaited) on_dead_(client);
}

void ClientWatch::arm_fallback() {
  if (fallback_armed_) return;
  fallback_armed_ = true;
  loop_.at(loop_.now() + kFallback, lifetime_.guard([this] { look_at_all(); }));
}

void ClientWatch::look_at_all() {
  fallback_armed_ = false;
  std::vector<ClientId> dead;
  bool more = false;
  for (const auto& [client, watched] : clients_) {
    if (watched.users == 0 || watched.descriptor >= 0) continue;
    if (test_liveness(store_.clients(), 'c', client) == Alive::no) {
      dead.push_back(client);
    } else {
      more = true;
    }
  }
  for (const ClientId client : dead) report(client);
  if (more) arm_fallback();
}

}  // namespace baton::file
