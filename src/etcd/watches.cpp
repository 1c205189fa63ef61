#include "etcd/watches.h"

#include "etcd/watch_lane.h"

#include <algorithm>
#include <utility>

namespace baton::etcd {

using std::chrono::milliseconds;

namespace {
constexpr milliseconds kRefusedPause{1'000};
}  // namespace

Watches::Watches(Loop& loop, Link& link) : loop_(loop), link_(link) {}

Watches::~Watches() {
  lifetime_.end();
  for (const auto& [id, watch] : watches_) loop_.cancel(watch->timer);
}

void Watches::Watch::on(WatchStep step) noexcept {
  const auto next = next_state(state_, step);
  if (!next) return;
  state_ = *next;
  continuity_ = next_continuity(continuity_, step);
}

Watches::WatchPtr Watches::find(std::int64_t id) const {
  const auto found = watches_.find(id);
  return found == watches_.end() ? nullptr : found->second;
}

WatchId Watches::watch(Want want, WatchNewsHandler handler) {
  const auto number = static_cast<std::uint64_t>(next_++);
  const WatchId id{number};
  const auto known = by_key_.find(want.key);
  if (known != by_key_.end() && known->second->want.created == want.created) {
    // Callers with the same key share one watch. If the watch waits for a timer and the new caller
    // wants no delay, start it now.
    const auto watch = known->second;
    watch->handlers.emplace_back(id, std::move(handler));
    by_id_.emplace(number, watch);
    const bool waits =
        watch->state() == WatchState::delayed || watch->state() == WatchState::refused;
    if (waits && want.delay == Nanos{}) {
      loop_.cancel(std::exchange(watch->timer, TimerId::none));
      watch->want.from_known = want.from_known;
      watch->want.known = std::max(watch->want.known, want.known);
      begin(watch);
    }
    return id;
  }
  // The same name with another create revision: the older key is gone.
  const bool older = known != by_key_.end() && want.created < known->second->want.created;
  if (known != by_key_.end() && !older) {
    loop_.defer(lifetime_.guard([this, old = known->second] {
      if (old->state() != WatchState::over) fire(old, {true, false, 0, 0});
    }));
  }
  auto watch = std::make_shared<Watch>();
  watch->id = next_++;
  watch->want = std::move(want);
  watch->handlers.emplace_back(id, std::move(handler));
  watches_.emplace(watch->id, watch);
  by_id_.emplace(number, watch);
  if (older) {
    fire(watch, {true, false, 0, 0});  // deferred
    return id;
  }
  by_key_[watch->want.key] = watch;
  if (watch->want.delay == Nanos{}) {
    begin(watch);
  } else {
    watch->timer = loop_.at(loop_.now() + watch->want.delay, [this, watch] {
      watch->timer = TimerId::none;
      begin(watch);
    });
  }
  return id;
}

WatchId Watches::watch_puts(const std::string& key, std::int64_t after, PutHandler handler) {
  auto watch = std::make_shared<Watch>();
  watch->id = next_++;
  watch->want.key = key;
  watch->covered = after;
  watch->on_put = std::move(handler);
  watches_.emplace(watch->id, watch);
  by_id_.emplace(static_cast<std::uint64_t>(watch->id), watch);
  begin(watch);
  return WatchId{static_cast<std::uint64_t>(watch->id)};
}

void Watches::begin(const WatchPtr& watch) {
  watch->on(WatchStep::begin);
  join_lane(watch);
}

void Watches::join_lane(const WatchPtr& watch) {
  if (watch->want.from_known) watch->covered = watch->want.known;
  for (const auto& lane : lanes_) {
    if (lane->size() < kPerStream) {
      lane->add(watch);
      return;
    }
  }
  lanes_.push_back(std::make_unique<Lane>(*this));
  lanes_.back()->add(watch);
}

// The server refused or cancelled this watch. After a pause its callers look for themselves; a
// watch for puts is started again.
void Watches::pause(const WatchPtr& watch) {
  watch->on(WatchStep::refused_by_server);
  if (watch->lane != nullptr) std::exchange(watch->lane, nullptr)->remove(*watch);
  watch->covered = 0;
  watch->timer = loop_.at(loop_.now() + kRefusedPause, [this, watch] {
    watch->timer = TimerId::none;
    if (watch->on_put) {
      begin_anew(watch);
    } else {
      fire(watch, {});
    }
  });
}

// Uses a new watch id, because the server still knows the old one.
void Watches::begin_anew(const WatchPtr& watch) {
  watch->on(WatchStep::begin_anew);
  if (watch->lane != nullptr) std::exchange(watch->lane, nullptr)->remove(*watch);
  watches_.erase(watch->id);
  watch->id = next_++;
  watch->covered = 0;
  watches_.emplace(watch->id, watch);
  join_lane(watch);
}

void Watches::unwatch(WatchId id) {
  fired_.erase(static_cast<std::uint64_t>(id));
  const auto found = by_id_.find(static_cast<std::uint64_t>(id));
  if (found == by_id_.end()) return;
  const auto watch = found->second;
  by_id_.erase(found);
  std::erase_if(watch->handlers, [id](const auto& handler) { return handler.first == id; });
  if (watch->handlers.empty()) forget(watch);
}

void Watches::forget(const WatchPtr& watch) {
  watch->on(WatchStep::finished);
  loop_.cancel(std::exchange(watch->timer, TimerId::none));
  watches_.erase(watch->id);
  if (const auto mine = by_key_.find(watch->want.key);
      mine != by_key_.end() && mine->second == watch) {
    by_key_.erase(mine);
  }
  for (const auto& [id, handler] : watch->handlers) by_id_.erase(static_cast<std::uint64_t>(id));
  if (watch->lane != nullptr) std::exchange(watch->lane, nullptr)->remove(*watch);
}

// ---- events

void Watches::created(const WatchPtr& watch, std::int64_t revision) {
  if (watch->covered != 0) {
    watch->on(WatchStep::accepted_at_known);
  } else if (watch->on_put) {
    watch->on(WatchStep::accepted);
    watch->covered = revision;
  } else if (revision <= watch->want.known) {
    watch->on(WatchStep::accepted);
    watch->covered = watch->want.known;  // nothing has changed since
  } else {
    watch->on(WatchStep::accepted_unchecked);
    watch->looking = revision;
    look(watch, revision, true);
  }
}

// Checks whether the key was deleted before the watch started. First asks the watch's own member at
// the start revision: this read does not involve the other members. If it fails, asks the cluster.
void Watches::look(const WatchPtr& watch, std::int64_t revision, bool pinned) {
  etcdpb::RangeRequest request;
  request.set_key(watch->want.key);
  request.set_keys_only(true);
  RequestOptions how;
  if (pinned) {
    request.set_revision(revision);
    request.set_serializable(true);
    how.endpoint = watch->lane->endpoint();
    how.linearizable = false;
    how.timeout = kPinnedPatience;
  }
  link_.ask<etcdpb::RangeResponse>(
      Call::range, request, how,
      lifetime_.guard([this, watch, revision, pinned](Reply<etcdpb::RangeResponse>& reply) {
        if (watch->state() == WatchState::over || watch->looking != revision) return;
        if (!reply.ok() && pinned) {
          look(watch, revision, false);
          return;
        }
        const bool there = reply.ok() && reply.body.kvs_size() == 1 &&
                           reply.body.kvs(0).create_revision() == watch->want.created;
        if (there) {
          watch->on(WatchStep::key_found);
          watch->covered = revision;
        } else {
          fire(watch, {reply.ok(), pinned, revision, reply.endpoint});
        }
      }));
}

void Watches::event(const WatchPtr& watch, const etcdpb::Event& event) {
  const std::int64_t revision = event.kv().mod_revision();
  if (watch->on_put) {
    if (event.type() != etcdpb::Event::PUT) return;
    watch->covered = std::max(watch->covered, revision);
    watch->on_put(event.kv().create_revision());
    return;
  }
  if (event.type() != etcdpb::Event::DELETE || revision <= watch->want.created) return;
  // After a stream broke, the new stream may go to another member: then the event is not pinned,
  // and the caller asks the cluster.
  const bool pinned = watch->continuity() != Continuity::resumed;
  fire(watch, {true, pinned, revision, watch->lane->endpoint()});
}

void Watches::deleted(const std::string& key, std::int64_t created, std::int64_t revision,
                      std::size_t endpoint) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end() || found->second->want.created != created) return;
  const auto watch = found->second;
  fire(watch, {true, true, revision, endpoint});
}

void Watches::fire(const WatchPtr& watch, const WatchNews& news) {
  std::vector<std::uint64_t> ids;
  for (auto& [id, handler] : watch->handlers) {
    ids.push_back(static_cast<std::uint64_t>(id));
    fired_.emplace(ids.back(), std::move(handler));
  }
  forget(watch);
  // Deferred, so that no handler runs inside a call of its owner. A handler may unwatch other
  // watches or end the session, so each step checks again.
  loop_.defer([this, alive = lifetime_.watch(), ids = std::move(ids), news] {
    for (const auto id : ids) {
      if (!alive) return;
      const auto found = fired_.find(id);
      if (found == fired_.end()) continue;
      auto handler = std::move(found->second);
      fired_.erase(found);
      handler(news);
    }
  });
}

void Watches::leave(std::size_t endpoint) {
  for (const auto& lane : lanes_) {
    if (lane->open() && lane->endpoint() == endpoint) lane->renew(true);
  }
}

}  // namespace baton::etcd
