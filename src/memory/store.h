// Store: keeps the queues, sessions and leases of one in-process store, as a server would. Callers
// pass the current time. Thread-safe.
#pragma once

#include "memory/namespace.h"

#include <baton/client.h>
#include <baton/result.h>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/seam/session.h"
#include "common/seam/ticket.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace baton::memory {

enum class SessionId : std::uint64_t {};

// Receives the store's news for one session. Called from any thread, without the store's mutex.
class SessionPeer {
 public:
  virtual ~SessionPeer() = default;
  virtual void watch_fired(WatchId id) = 0;
  virtual void session_over() = 0;
};

class Store {
 public:
  // leases: a session ends when no heartbeat arrives for its timeout.
  // first: tokens start above it; a store that replaces an earlier one must start above that one's.
  explicit Store(bool leases, std::uint64_t first = 0) : leases_(leases), revision_(first) {}
  bool leases() const noexcept { return leases_; }

  SessionId open(std::string label, std::chrono::milliseconds timeout,
                 std::shared_ptr<SessionPeer> peer, Time now);
  bool heartbeat(SessionId session, Time now);  // false: the session has ended
  void close(SessionId session);
  // Ends the sessions whose lease has expired.
  void expire(Time now);
  Time next_expiry() const;
  void expire_all();

  // All of these return Error(session_expired) to a session that has ended.
  Result<Standing> join(SessionId session, const LockName& name, Nonce nonce);
  Result<Standing> look(SessionId session, const LockName& name, Nonce nonce);
  Result<bool> peek(SessionId session, const LockName& name);
  Result<WithdrawResult> withdraw(SessionId session, const LockName& name, Nonce nonce);
  Result<bool> verify(SessionId session, const LockName& name, Nonce nonce);
  // Fires at once if there is no such ticket. Does nothing if the session has ended.
  void watch(SessionId session, const LockName& name, std::uint64_t rank, WatchId id);
  void unwatch(SessionId session, WatchId id);

  LockSnapshot inspect(const LockName& name) const;
  std::vector<std::string> list(std::string_view prefix) const;
  bool evict(const LockName& name, std::string_view entry_id);
  Result<std::uint64_t> settle_token_base(std::uint64_t wanted);

  std::size_t entries(const std::string& name) const;
  std::uint64_t front_token(const LockName& name) const;  // 0: the queue is empty
  void end_session(SessionId session);                    // by force; the session gets the news
  std::size_t sessions() const;
  std::size_t watches() const;

 private:
  class Sign final : public TicketSign {
   public:
    bool evicted() const noexcept override { return gone_.load(std::memory_order_acquire); }
    void set() noexcept { gone_.store(true, std::memory_order_release); }

   private:
    std::atomic<bool> gone_{false};
  };
  struct StoredTicket {
    SessionId session;
    Nonce nonce;
    std::uint64_t token;
    std::chrono::system_clock::time_point since;
    std::shared_ptr<Sign> sign;
  };
  using Queue = std::map<std::uint64_t, StoredTicket>;  // by rank
  struct SessionRecord {
    std::string label;
    std::chrono::milliseconds timeout;
    std::shared_ptr<SessionPeer> peer;
    Time expires;
    std::map<std::pair<LockName, Nonce>, std::uint64_t> tickets;  // rank
    std::set<Nonce> withdrawn;  // a join that arrives after its withdraw must not add a ticket
    std::map<WatchId, std::pair<LockName, std::uint64_t>> watches;
  };
  using News = std::vector<std::pair<std::shared_ptr<SessionPeer>, WatchId>>;

  Standing standing(const Queue& queue, const LockName& name, const SessionRecord& session,
                    SessionId id, Nonce nonce) const;
  void remove(const LockName& name, std::uint64_t rank, News& news) BATON_REQUIRES(mutex_);
  void end(SessionId session, News& news) BATON_REQUIRES(mutex_);
  static void deliver(const News& news);
  static std::string entry_id(const StoredTicket& ticket);

  const bool leases_;
  mutable Mutex mutex_;
  std::uint64_t revision_ BATON_GUARDED_BY(mutex_);
  std::uint64_t token_base_ BATON_GUARDED_BY(mutex_) = 0;  // 0: none is recorded
  std::uint64_t next_session_ BATON_GUARDED_BY(mutex_) = 1;
  std::map<LockName, Queue> queues_ BATON_GUARDED_BY(mutex_);
  std::map<SessionId, SessionRecord> sessions_ BATON_GUARDED_BY(mutex_);
  std::map<std::pair<LockName, std::uint64_t>, std::set<std::pair<SessionId, WatchId>>> watchers_
      BATON_GUARDED_BY(mutex_);
};

}  // namespace baton::memory
