#include "memory/store.h"

#include "common/seam/token_base.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace baton::memory {

namespace {
constexpr std::size_t kMostCounted = 1024;      // the count of tickets ahead is only for messages
constexpr std::size_t kMostWithdrawn = 10'000;  // far more than the joins that can be under way

Error over() { return {Errc::session_expired, "the store has ended this session"}; }
}  // namespace

std::string Store::entry_id(const StoredTicket& ticket) {
  return std::to_string(static_cast<std::uint64_t>(ticket.session)) + "-" +
         std::to_string(static_cast<std::uint64_t>(ticket.nonce));
}

void Store::deliver(const News& news) {
  for (const auto& [peer, watch] : news) {
    if (watch == WatchId::none) {
      peer->session_over();
    } else {
      peer->watch_fired(watch);
    }
  }
}

// ---- sessions

SessionId Store::open(std::string label, std::chrono::milliseconds timeout,
                      std::shared_ptr<SessionPeer> peer, Time now) {
  const MutexLock guard(mutex_);
  const SessionId id{next_session_++};
  const Time expires = leases_ ? saturating_add_ms(now, timeout) : kNever;
  sessions_.emplace(id,
                    SessionRecord{std::move(label), timeout, std::move(peer), expires, {}, {}, {}});
  return id;
}

bool Store::heartbeat(SessionId session, Time now) {
  const MutexLock guard(mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return false;
  if (leases_) found->second.expires = saturating_add_ms(now, found->second.timeout);
  return true;
}

void Store::end(SessionId session, News& news) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  SessionRecord& record = found->second;
  while (!record.watches.empty()) {
    const auto& [id, ticket] = *record.watches.begin();
    const auto watchers = watchers_.find(ticket);
    if (watchers != watchers_.end()) {
      watchers->second.erase({session, id});
      if (watchers->second.empty()) watchers_.erase(watchers);
    }
    record.watches.erase(record.watches.begin());
  }
  while (!record.tickets.empty()) {
    const auto [key, rank] = *record.tickets.begin();
    remove(key.first, rank, news);
  }
  sessions_.erase(found);
}

void Store::close(SessionId session) {
  News news;
  {
    const MutexLock guard(mutex_);
    end(session, news);
  }
  deliver(news);
}

void Store::expire(Time now) {
  News news;
  {
    const MutexLock guard(mutex_);
    for (auto it = sessions_.begin(); it != sessions_.end();) {
      const auto [id, peer, expires] = std::tuple(it->first, it->second.peer, it->second.expires);
      ++it;
      if (expires > now) continue;
      end(id, news);
      news.emplace_back(peer, WatchId::none);
    }
  }
  deliver(news);
}

void Store::expire_all() { expire(kNever); }

void Store::end_session(SessionId session) {
  News news;
  {
    const MutexLock guard(mutex_);
    const auto found = sessions_.find(session);
    if (found == sessions_.end()) return;
    const auto peer = found->second.peer;
    end(session, news);
    news.emplace_back(peer, WatchId::none);
  }
  deliver(news);
}

Time Store::next_expiry() const {
  const MutexLock guard(mutex_);
  Time next = kNever;
  for (const auto& [id, record] : sessions_) next = std::min(next, record.expires);
  return next;
}

// ---- queues

Standing Store::standing(const Queue& queue, const LockName& name, const SessionRecord& session,
                         SessionId id, Nonce nonce) const {
  Standing result;
  const auto mine = session.tickets.find({name, nonce});
  if (mine == session.tickets.end()) return result;
  const auto ticket = queue.find(mine->second);
  result.token = ticket->second.token;
  result.sign = ticket->second.sign;
  if (ticket != queue.begin()) {
    const auto before = std::prev(ticket);
    auto ours = before->second.session == id ? std::optional(before->second.nonce) : std::nullopt;
    result.view.tickets.push_back({before->first, entry_id(before->second), ours});
    for (auto it = before; it != queue.begin() && result.view.omitted_ahead < kMostCounted; --it) {
      ++result.view.omitted_ahead;
    }
  }
  result.view.tickets.push_back({ticket->first, entry_id(ticket->second), nonce});
  return result;
}

Result<Standing> Store::join(SessionId session, const LockName& name, Nonce nonce) {
  const MutexLock guard(mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return over();
  SessionRecord& record = found->second;
  if (record.withdrawn.contains(nonce)) {
    return Standing{};  // withdrawn before the join arrived
  }
  Queue& queue = queues_[name];
  if (!record.tickets.contains({name, nonce})) {
    const auto rank = ++revision_;
    queue.emplace(rank, StoredTicket{session, nonce, rank, std::chrono::system_clock::now(),
                                     std::make_shared<Sign>()});
    record.tickets.emplace(std::pair(name, nonce), rank);
  }
  return standing(queue, name, record, session, nonce);
}

Result<Standing> Store::look(SessionId session, const LockName& name, Nonce nonce) {
  const MutexLock guard(mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return over();
  const auto queue = queues_.find(name);
  if (queue == queues_.end()) return Standing{};
  return standing(queue->second, name, found->second, session, nonce);
}

Result<bool> Store::peek(SessionId session, const LockName& name) {
  const MutexLock guard(mutex_);
  if (!sessions_.contains(session)) return over();
  return queues_.contains(name);
}

Result<bool> Store::verify(SessionId session, const LockName& name, Nonce nonce) {
  const MutexLock guard(mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return over();
  const auto mine = found->second.tickets.find({name, nonce});
  if (mine == found->second.tickets.end()) return false;
  return queues_.at(name).begin()->first == mine->second;
}

void Store::remove(const LockName& name, std::uint64_t rank, News& news) {
  const auto queue = queues_.find(name);
  const auto ticket = queue->second.find(rank);
  const auto owner = sessions_.find(ticket->second.session);
  if (owner != sessions_.end()) owner->second.tickets.erase({name, ticket->second.nonce});
  queue->second.erase(ticket);
  if (queue->second.empty()) queues_.erase(queue);
  auto watchers = watchers_.extract({name, rank});
  if (watchers.empty()) return;
  for (const auto& [session, id] : watchers.mapped()) {
    SessionRecord& record = sessions_.at(session);
    record.watches.erase(id);
    news.emplace_back(record.peer, id);
  }
}

Result<WithdrawResult> Store::withdraw(SessionId session, const LockName& name, Nonce nonce) {
  News news;
  {
    const MutexLock guard(mutex_);
    const auto found = sessions_.find(session);
    if (found == sessions_.end()) return over();
    if (leases_) {  // a store without leases has a direct transport: no join arrives late
      auto& withdrawn = found->second.withdrawn;
      withdrawn.insert(nonce);
      if (withdrawn.size() > kMostWithdrawn) withdrawn.erase(withdrawn.begin());
    }
    const auto mine = found->second.tickets.find({name, nonce});
    if (mine != found->second.tickets.end()) remove(name, mine->second, news);
  }
  deliver(news);
  return WithdrawResult{};
}

void Store::watch(SessionId session, const LockName& name, std::uint64_t rank, WatchId id) {
  News news;
  {
    const MutexLock guard(mutex_);
    const auto found = sessions_.find(session);
    if (found == sessions_.end()) return;
    const auto queue = queues_.find(name);
    const bool there = queue != queues_.end() && queue->second.contains(rank);
    if (there) {
      found->second.watches.emplace(id, std::pair(name, rank));
      watchers_[{name, rank}].emplace(session, id);
    } else {
      news.emplace_back(found->second.peer, id);
    }
  }
  deliver(news);
}

void Store::unwatch(SessionId session, WatchId id) {
  const MutexLock guard(mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  const auto watch = found->second.watches.find(id);
  if (watch == found->second.watches.end()) return;
  const auto watchers = watchers_.find(watch->second);
  watchers->second.erase({session, id});
  if (watchers->second.empty()) watchers_.erase(watchers);
  found->second.watches.erase(watch);
}

// ---- operators

LockSnapshot Store::inspect(const LockName& name) const {
  const MutexLock guard(mutex_);
  LockSnapshot snapshot{name.text(), {}};
  const auto queue = queues_.find(name);
  if (queue == queues_.end()) return snapshot;
  for (const auto& [rank, ticket] : queue->second) {
    snapshot.entries.push_back(
        {entry_id(ticket), sessions_.at(ticket.session).label, ticket.token, ticket.since});
  }
  return snapshot;
}

std::vector<std::string> Store::list(std::string_view prefix) const {
  const MutexLock guard(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, queue] : queues_) {
    if (name.text().starts_with(prefix)) names.push_back(name.text());
  }
  return names;
}

bool Store::evict(const LockName& name, std::string_view id) {
  News news;
  {
    const MutexLock guard(mutex_);
    const auto queue = queues_.find(name);
    if (queue == queues_.end()) return false;
    const auto ticket = std::find_if(queue->second.begin(), queue->second.end(),
                                     [id](const auto& e) { return entry_id(e.second) == id; });
    if (ticket == queue->second.end()) return false;
    ticket->second.sign->set();  // before any waiter can be granted the lock: valid() reads it
    remove(name, ticket->first, news);
  }
  deliver(news);
  return true;
}

Result<std::uint64_t> Store::settle_token_base(std::uint64_t wanted) {
  const MutexLock guard(mutex_);
  if (wanted != 0 && token_base_ == 0) {
    if (!queues_.empty()) return token_base_in_use(wanted, queues_.begin()->first.text());
    token_base_ = wanted;
  }
  return token_base_;
}

std::size_t Store::entries(const std::string& name) const {
  const MutexLock guard(mutex_);
  for (const auto& [lock, queue] : queues_) {
    if (lock.text() == name) return queue.size();
  }
  return 0;
}

std::uint64_t Store::front_token(const LockName& name) const {
  const MutexLock guard(mutex_);
  const auto queue = queues_.find(name);
  return queue == queues_.end() ? 0 : queue->second.begin()->second.token;
}

std::size_t Store::sessions() const {
  const MutexLock guard(mutex_);
  return sessions_.size();
}

std::size_t Store::watches() const {
  const MutexLock guard(mutex_);
  return watchers_.size();
}

}  // namespace baton::memory
