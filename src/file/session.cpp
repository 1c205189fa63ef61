// The calls of Session on its own tickets: join, look, watch, withdraw. session_admin.cpp has the
// calls of operators.
#include "file/session.h"

#include "common/base/fork_guard.h"
#include "file/error.h"
#include "file/sweep.h"
#include "file/session_respond.h"

#include <fcntl.h>

#include <algorithm>
#include <vector>

namespace baton::file {

namespace {

constexpr std::size_t kOpenLocks = 16;  // two descriptors each, at most
constexpr std::chrono::milliseconds kIdle{1000};
constexpr std::chrono::milliseconds kTidySlice{5};   // removing files must not block the strand
constexpr std::chrono::milliseconds kTidyPause{50};  // for other work on the strand
constexpr std::size_t kBellBatch = 4096;             // 32 KiB, half of what a FIFO holds

// If it fails, sweeps once and retries: files of dead clients may be what fills the disk.
Liveness make_liveness(const StoreDir& store, const std::string& label, const Clock& clock) {
  try {
    return Liveness(store, label);
  } catch (const Error& e) {
    if (e.errc() != Errc::store_error) throw;
    Clients clients(store, ClientId{});
    sweep(store, clients, clock, clock.now() + kSweepTime);
  }
  return Liveness(store, label);
}

// Keeps the mapping of the queue file alive, so evicted() can be called at any time.
class Sign final : public TicketSign {
 public:
  Sign(std::shared_ptr<QueueFile> file, std::uint32_t index)
      : file_(std::move(file)), record_(file_->record(index)) {}
  bool evicted() const noexcept override {
    // dead: another client took this one for dead (an operator removed its liveness file) and no
    // longer waits for this ticket.
    return has_flag(record_, RecordFlag::evicted) || has_flag(record_, RecordFlag::dead);
  }

 private:
  std::shared_ptr<QueueFile> file_;
  QueueRecord& record_;
};

}  // namespace

Store::Store(const std::string& path) : directory(path), tokens(directory, current_boot()) {}

Session::Lock::Lock(const Session& session, const LockName& n)
    : name(n),
      hash(hash_text(n.text())),
      queue(session.store_->directory, &session.store_->tokens, session.clients_, n) {}

Session::Session(ThreadLoop& loop, std::shared_ptr<Store> store, const BackendOptions& options)
    : loop_(loop),
      store_(std::move(store)),
      log_(options.log),
      fork_generation_(fork_generation()),
      liveness_(make_liveness(store_->directory, options.label, loop.clock())),
      clients_(store_->directory, liveness_.id()),
      client_watch_(loop, store_->directory, liveness_, options.log,
                    [this](ClientId client) { watches_.fire_client(client); }),
      watches_(loop, [this](const QueuedTicket& ticket) {
        if (!clients_.is_own(ticket.client())) client_watch_.remove(ticket.client());
        arm_idle_timer(kIdle);  // its lock may be idle now
      }) {
  loop_.add_fd(liveness_.bell(), [this] { on_bell(); });
  sweep(store_->directory, clients_, loop_.clock(), loop_.now() + kSweepTime);
}

Session::~Session() {
  lifetime_.end();
  // A forked child shares the epoll of its parent and must not remove the parent's descriptor.
  if (fork_generation_ == fork_generation() && !closed_) loop_.remove_fd(liveness_.bell());
  watches_.clear();
}

Session::Lock* Session::known_lock(const LockName& name) {
  const auto it = locks_.find(name.text());
  return it == locks_.end() ? nullptr : it->second.get();
}

Session::Lock& Session::lock(const LockName& name) {
  if (closed_) throw Error(Errc::closed, "the session is closed");
  clients_.new_look();
  if (Lock* known = known_lock(name)) return *known;
  auto made = std::make_unique<Lock>(*this, name);
  Lock& lock = *made;
  locks_.emplace(name.text(), std::move(made));
  by_hash_.emplace(lock.hash, &lock);
  lock.idle_since = loop_.now();
  return lock;
}

// Called after each use of a lock. Keeps the number of open descriptors small and removes locks
// that this session no longer uses.
void Session::used(Lock& lock) {
  if (lock.open_at) {
    open_.splice(open_.begin(), open_, *lock.open_at);
  } else if (lock.queue.has_descriptors()) {
    open_.push_front(&lock);
    lock.open_at = open_.begin();
  }
  if (lock.idle() && lock.queue.blank()) {
    forget(lock);  // it has no files; keeping it would cost memory for each name ever tried
    return;
  }
  if (lock.idle()) {
    lock.idle_since = loop_.now();
    arm_idle_timer(kIdle);
  }
  if (open_.size() <= kOpenLocks) return;
  Lock& oldest = *open_.back();
  open_.pop_back();
  oldest.open_at.reset();
  if (oldest.idle()) {
    discard(oldest);
  } else {
    oldest.queue.close_descriptors();
  }
}

// False: its files could not be removed, and perhaps no other client will remove them.
bool Session::discard(Lock& lock) noexcept {
  bool tidy = false;
  try {
    lock.queue.remove_if_unused();
    tidy = true;
  } catch (const std::exception& e) {
    log_(LogLevel::warning, "cannot remove the unused files of lock \"" + lock.name.text() +
                                "\" in " + store_->directory.path() + ": " + e.what());
  }
  forget(lock);
  return tidy;
}

void Session::forget(Lock& lock) noexcept {
  if (lock.open_at) open_.erase(*lock.open_at);
  const auto [begin, end] = by_hash_.equal_range(lock.hash);
  by_hash_.erase(std::find_if(begin, end, [&](const auto& e) { return e.second == &lock; }));
  locks_.erase(locks_.find(lock.name.text()));
}

void Session::arm_idle_timer(std::chrono::milliseconds delay) {
  if (idle_timer_armed_ || closed_) return;
  idle_timer_armed_ = true;
  loop_.at(loop_.now() + delay, lifetime_.guard([this] { discard_idle(); }));
}

void Session::discard_idle() {
  idle_timer_armed_ = false;
  clients_.new_look();
  const Time now = loop_.now();
  std::vector<Lock*> old;
  bool more = false;
  for (const auto& [name, lock] : locks_) {
    if (!lock->idle()) continue;
    if (now - lock->idle_since >= kIdle) {
      old.push_back(lock.get());
    } else {
      more = true;
    }
  }
  for (Lock* lock : old) {
    if (loop_.now() - now >= kTidySlice) {
      arm_idle_timer(kTidyPause);
      return;
    }
    discard(*lock);
  }
  if (more) arm_idle_timer(kIdle / 2);
}

Standing Session::standing(Lock& lock, Nonce nonce, const QueuedTicket& ticket) {
  Standing standing;
  const QueuedTicket predecessor = lock.queue.ahead(ticket, standing.view.omitted_ahead);
  auto& tickets = standing.view.tickets;
  tickets.reserve(2);
  if (predecessor) {
    const std::uint64_t theirs = predecessor.record().nonce;
    const ClientId client = predecessor.client();
    tickets.push_back({predecessor.rank(), entry_id(client, theirs),
                       clients_.is_own(client) ? std::optional(Nonce{theirs}) : std::nullopt});
  }
  tickets.push_back(
      {ticket.rank(), entry_id(clients_.own(), static_cast<std::uint64_t>(nonce)), nonce});
  standing.token = ticket.rank();
  standing.sign = std::make_shared<Sign>(ticket.generation->file, ticket.index);
  return standing;
}

void Session::join(const LockName& name, Nonce nonce, Answer<Standing> answer) {
  respond(std::move(answer), [&] {
    Lock& mine = lock(name);
    const auto key = static_cast<std::uint64_t>(nonce);
    if (const auto it = mine.tickets.find(key); it != mine.tickets.end()) {
      return mine.queue.stands(it->second) ? standing(mine, nonce, it->second) : Standing{};
    }
    try {
      const QueuedTicket ticket = mine.queue.join(key);
      try {
        mine.tickets.emplace(key, ticket);
        Standing result = standing(mine, nonce, ticket);
        used(mine);
        return result;
      } catch (...) {
        mine.tickets.erase(key);
        take_out(mine, ticket);
        throw;
      }
    } catch (...) {
      used(mine);
      throw;
    }
  });
}

void Session::look(const LockName& name, Nonce nonce, const LookHint&, Answer<Standing> answer) {
  respond(std::move(answer), [&] {
    clients_.new_look();
    Lock* mine = known_lock(name);
    if (mine == nullptr) return Standing{};
    const auto it = mine->tickets.find(static_cast<std::uint64_t>(nonce));
    if (it == mine->tickets.end() || !mine->queue.stands(it->second)) return Standing{};
    return standing(*mine, nonce, it->second);
  });
}

void Session::verify(const LockName& name, Nonce nonce, Answer<bool> answer) {
  respond(std::move(answer), [&] {
    clients_.new_look();
    Lock* mine = known_lock(name);
    if (mine == nullptr) return false;
    const auto it = mine->tickets.find(static_cast<std::uint64_t>(nonce));
    std::size_t omitted = 0;
    return it != mine->tickets.end() && mine->queue.stands(it->second) &&
           !mine->queue.ahead(it->second, omitted);
  });
}

WatchId Session::watch(const LockName& name, const Ticket& ticket, const WatchFor&,
                       WatchHandler handler) {
  if (closed_) return WatchId::none;  // the handler is never called
  Lock& watched = lock(name);
  QueuedTicket queued;
  if (ticket.ours) {
    const auto it = watched.tickets.find(static_cast<std::uint64_t>(*ticket.ours));
    if (it != watched.tickets.end()) queued = it->second;
  } else {
    queued = watched.queue.find(ticket.rank);
    if (queued && entry_id(queued.client(), queued.record().nonce) != ticket.id) queued = {};
  }
  if (queued && !queued.in_line()) queued = {};
  const WatchId id = watches_.add(watched.watches, queued, std::move(handler));
  if (queued && !clients_.is_own(queued.client())) client_watch_.add(queued.client());
  return id;
}

void Session::withdraw(const LockName& name, Nonce nonce, Answer<WithdrawResult> answer) {
  respond(std::move(answer), [&] {
    clients_.new_look();
    Lock* mine = known_lock(name);
    if (mine == nullptr) return WithdrawResult{};
    const auto it = mine->tickets.find(static_cast<std::uint64_t>(nonce));
    if (it == mine->tickets.end()) return WithdrawResult{};
    const QueuedTicket ticket = std::move(it->second);
    mine->tickets.erase(it);
    take_out(*mine, ticket);
    used(*mine);
    return WithdrawResult{};
  });
}

// The ticket is gone as soon as the flag is set. If a later step fails, waiters find out by
// themselves (backstop()).
void Session::take_out(Lock& lock, const QueuedTicket& ticket) {
  set_flag(ticket.record(), RecordFlag::withdrawn);
  try {
    wake_behind(lock, ticket);
    lock.queue.prune();
  } catch (const std::exception& e) {
    log_(LogLevel::warning,
         "lock \"" + lock.name.text() + "\" in " + store_->directory.path() +
             ": cannot wake the next waiter, it will look by itself: " + e.what());
  }
}

void Session::wake_behind(Lock& lock, const QueuedTicket& gone) {
  watches_.fire_rank(lock.watches, gone.rank());
  QueuedTicket from = gone;
  while (const QueuedTicket next = lock.queue.behind(from)) {
    const ClientId client = next.client();
    if (clients_.is_own(client)) {
      // All tickets between `gone` and `next` are gone, too, but watches on them may not have fired
      // yet.
      watches_.fire_gone_between(lock.watches, gone.rank() + 1, next.rank());
      return;
    }
    // A client that lives without a bell looks by itself later (backstop()).
    if (clients_.ring(client, lock.hash) || clients_.alive(client)) return;
    set_flag(next.record(), RecordFlag::dead);
    from = next;
  }
}

void Session::on_bell() {
  std::vector<std::uint64_t> hashes(kBellBatch);
  hashes.resize(liveness_.drain_bell(hashes.data(), hashes.size()));
  // The kernel makes pipes small for a user with many FIFOs. A small pipe is full before it
  // contains a whole batch.
  const int bytes = ::fcntl(liveness_.bell(), F_GETPIPE_SZ);
  const std::size_t half =
      bytes > 0 ? static_cast<std::size_t>(bytes) / sizeof(std::uint64_t) / 2 : kBellBatch;
  if (hashes.size() >= std::min(kBellBatch, half)) {
    // The bell may have been full, and hashes may be lost. So check the watches of all locks.
    for (const auto& [name, lock] : locks_) watches_.fire_gone(lock->watches);
    return;
  }
  std::sort(hashes.begin(), hashes.end());
  hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
  for (const std::uint64_t hash : hashes) {
    const auto [begin, end] = by_hash_.equal_range(hash);
    for (auto it = begin; it != end; ++it) watches_.fire_gone(it->second->watches);
  }
}

}  // namespace baton::file
