// The calls of Session for operators (inspect, list, evict), and its close().
#include "file/session.h"

#include "common/seam/token_base.h"
#include "file/sweep.h"
#include "file/session_respond.h"
#include "file/token_base_file.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace baton::file {

namespace {

constexpr std::chrono::milliseconds kTidy{2000};  // of the five seconds that a close may take

// Clamped to what system_clock can represent: the file may contain any number.
std::chrono::system_clock::time_point since_of(const QueueRecord& record) {
  constexpr std::int64_t kLast = 9'000'000'000'000'000;
  return std::chrono::system_clock::time_point(
      std::chrono::microseconds(std::clamp<std::int64_t>(record.since, 0, kLast)));
}

}  // namespace

void Session::peek(const LockName& name, Answer<bool> busy) {
  respond(std::move(busy), [&] {
    Lock& there = lock(name);
    try {
      const bool result = there.queue.busy();
      used(there);
      return result;
    } catch (...) {
      used(there);
      throw;
    }
  });
}

void Session::inspect(const LockName& name, Answer<LockSnapshot> answer) {
  respond(std::move(answer), [&] {
    clients_.new_look();
    LockSnapshot snapshot;
    snapshot.name = name.text();
    std::map<ClientId, std::string> labels;
    // A separate LockQueue, so the one that our tickets use does not change.
    LockQueue queue(store_->directory, nullptr, clients_, name);
    for (const QueuedTicket& ticket : queue.line()) {
      const ClientId client = ticket.client();
      const QueueRecord& record = ticket.record();
      auto label = labels.find(client);
      if (label == labels.end()) label = labels.emplace(client, clients_.label(client)).first;
      Entry entry;
      entry.id = entry_id(client, record.nonce);
      entry.label = label->second.empty() ? "unknown" : label->second;
      entry.token = ticket.rank();
      entry.since = since_of(record);
      snapshot.entries.push_back(std::move(entry));
    }
    return snapshot;
  });
}

void Session::list(std::string_view prefix, Answer<std::vector<std::string>> answer) {
  respond(std::move(answer), [&] {
    clients_.new_look();
    std::vector<std::string> names;
    for_each_lock(store_->directory, prefix, [&](const LockName& name) {
      if (LockQueue(store_->directory, nullptr, clients_, name).busy()) {
        names.push_back(name.text());
      }
      return true;
    });
    std::sort(names.begin(), names.end());
    return names;
  });
}

void Session::evict(const LockName& name, std::string_view entry_id, Answer<bool> answer) {
  respond(std::move(answer), [&] {
    const auto key = parse_entry_id(entry_id);
    if (!key) return false;
    Lock& there = lock(name);
    std::vector<QueuedTicket> line;
    try {
      line = there.queue.line();
    } catch (...) {
      used(there);
      throw;
    }
    const auto it = std::find_if(line.begin(), line.end(), [&](const QueuedTicket& ticket) {
      return ticket.client() == key->client && ticket.record().nonce == key->nonce;
    });
    bool evicted = false;
    if (it != line.end()) {
      // Set the flag first: from here on valid() of the owner is false, and no client waits for
      // this ticket. Only then wake the others.
      evicted = !set_flag(it->record(), RecordFlag::evicted);
      if (!clients_.is_own(key->client)) clients_.ring(key->client, there.hash);
      wake_behind(there, *it);
    }
    used(there);
    return evicted;
  });
}

void Session::settle_token_base(std::uint64_t wanted, Answer<std::uint64_t> answer) {
  respond(std::move(answer), [&] {
    const auto recorded = find_token_base(store_->directory);
    if (recorded || wanted == 0) return recorded.value_or(0);
    clients_.new_look();
    for_each_lock(store_->directory, "", [&](const LockName& name) {
      if (LockQueue(store_->directory, nullptr, clients_, name).busy()) {
        throw token_base_in_use(wanted, name.text());
      }
      return true;
    });
    record_token_base(store_->directory, wanted);
    return find_token_base(store_->directory).value_or(0);
  });
}

SessionInfo Session::info() const {
  SessionInfo info;
  info.backend = "file";
  info.endpoint = store_->directory.path();
  info.timeout = std::chrono::milliseconds::max();
  info.state = closed_ ? SessionState::closed : SessionState::connected;
  info.liveness_fd = closed_ ? -1 : liveness_.descriptor();
  return info;
}

// Call it when our tickets are withdrawn. One ring makes a client check all its watches of the
// lock.
void Session::ring_all(Lock& lock) {
  LockQueue queue(store_->directory, nullptr, clients_, lock.name);
  std::set<ClientId> others;
  for (const QueuedTicket& ticket : queue.line()) others.insert(ticket.client());
  for (const ClientId client : others) clients_.ring(client, lock.hash);
}

// Wakes the waiters of all locks before it removes files, which is slow. False: files are left.
bool Session::withdraw_all() {
  clients_.new_look();
  std::vector<Lock*> locks;
  for (const auto& [name, lock] : locks_) {
    locks.push_back(lock.get());
    for (const auto& [nonce, ticket] : lock->tickets) {
      set_flag(ticket.record(), RecordFlag::withdrawn);
    }
  }
  for (Lock* lock : locks) {
    if (lock->tickets.empty()) continue;
    lock->tickets.clear();
    try {
      ring_all(*lock);
    } catch (const std::exception& e) {
      log_(LogLevel::warning,
           "lock \"" + lock->name.text() + "\" in " + store_->directory.path() +
               ": cannot wake the next waiter, it will look by itself: " + e.what());
    }
  }
  const Time deadline = loop_.now() + kTidy;
  bool tidy = true;
  for (Lock* lock : locks) {
    if (loop_.now() >= deadline) return false;
    tidy = discard(*lock) && tidy;
  }
  return tidy;
}

void Session::close(Answer<Done> answer) {
  respond(std::move(answer), [&] {
    if (closed_) return Done{};
    watches_.clear();
    const bool tidy = withdraw_all();
    closed_ = true;
    client_watch_.stop();
    loop_.remove_fd(liveness_.bell());
    sweep(store_->directory, clients_, loop_.clock(), loop_.now() + kSweepTime);
    // If files are left, keep the liveness file too: this client then looks like a dead one, and
    // the next sweep removes its files.
    if (tidy) liveness_.remove_files();
    liveness_.close();
    return Done{};
  });
}

}  // namespace baton::file
