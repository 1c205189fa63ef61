// Session: keeps the tickets and watches of one client in a file store.
#pragma once

#include "common/seam/session.h"
#include "common/base/lifetime.h"
#include "common/base/thread_loop.h"
#include "file/client_watch.h"
#include "file/clients.h"
#include "file/liveness.h"
#include "file/lock_queue.h"
#include "file/watch_table.h"

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

namespace baton::file {

// What all sessions of one backend share.
struct Store {
  explicit Store(const std::string& directory);  // throws Error
  StoreDir directory;
  TokenCounter tokens;
};

class Session final : public internal::Session {
 public:
  // On the strand. Throws Error.
  Session(ThreadLoop& loop, std::shared_ptr<Store> store, const BackendOptions& options);
  ~Session() override;

  void join(const LockName& name, Nonce nonce, Answer<Standing> answer) override;
  void look(const LockName& name, Nonce nonce, const LookHint& hint,
            Answer<Standing> answer) override;
  void peek(const LockName& name, Answer<bool> busy) override;
  WatchId watch(const LockName& name, const Ticket& ticket, const WatchFor& what,
                WatchHandler handler) override;
  void unwatch(WatchId id) override { watches_.remove(id); }
  void withdraw(const LockName& name, Nonce nonce, Answer<WithdrawResult> answer) override;
  void verify(const LockName& name, Nonce nonce, Answer<bool> answer) override;
  void inspect(const LockName& name, Answer<LockSnapshot> answer) override;
  void list(std::string_view prefix, Answer<std::vector<std::string>> answer) override;
  void evict(const LockName& name, std::string_view entry_id, Answer<bool> answer) override;
  void settle_token_base(std::uint64_t wanted, Answer<std::uint64_t> answer) override;
  void close(Answer<Done> answer) override;
  std::shared_ptr<LeaseView> lease() const override { return lease_; }
  SessionInfo info() const override;
  std::chrono::milliseconds backstop() const override { return std::chrono::seconds(1); }

 private:
  // One lock that this session uses or used a moment ago.
  struct Lock {
    Lock(const Session& session, const LockName& n);
    const LockName name;
    const std::uint64_t hash;
    LockQueue queue;
    std::unordered_map<std::uint64_t, QueuedTicket> tickets;  // ours, by nonce
    LockWatches watches;
    Time idle_since{};
    std::optional<std::list<Lock*>::iterator> open_at;  // its position in open_
    bool idle() const noexcept { return tickets.empty() && watches.empty(); }
  };

  template <class T, class F>
  void respond(Answer<T> answer, F&& work);
  Lock& lock(const LockName& name);
  Lock* known_lock(const LockName& name);
  void used(Lock& lock);
  bool discard(Lock& lock) noexcept;
  void forget(Lock& lock) noexcept;
  void discard_idle();
  void arm_idle_timer(std::chrono::milliseconds delay);

  Standing standing(Lock& lock, Nonce nonce, const QueuedTicket& ticket);
  void take_out(Lock& lock, const QueuedTicket& ticket);
  void wake_behind(Lock& lock, const QueuedTicket& gone);
  void on_bell();
  bool withdraw_all();
  void ring_all(Lock& lock);

  ThreadLoop& loop_;
  const std::shared_ptr<Store> store_;
  const std::function<void(LogLevel, std::string_view)> log_;
  const std::uint64_t fork_generation_;
  Liveness liveness_;
  mutable Clients clients_;
  ClientWatch client_watch_;
  WatchTable watches_;
  std::unordered_map<std::string, std::unique_ptr<Lock>> locks_;
  std::unordered_multimap<std::uint64_t, Lock*> by_hash_;
  std::list<Lock*> open_;  // locks with open descriptors, the last used first
  bool idle_timer_armed_ = false;
  bool closed_ = false;
  std::shared_ptr<LeaseView> lease_ = std::make_shared<LeaseView>();
  Lifetime lifetime_;
};

}  // namespace baton::file
