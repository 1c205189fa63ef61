// Tickets; session_line.cpp has the line and the lease, session_admin.cpp the operators'
// calls.
#include "zk/session.h"

#include "common/base/mutant.h"

#include <algorithm>
#include <utility>

namespace baton::internal {

namespace {
// A directory that vanishes this often between two requests is being removed on purpose.
constexpr int kMostTries = 16;
}  // namespace

std::string ZkSession::directory(const LockName& name) const {
  return zk_directory(parts_.root, name.text());
}

std::string ZkSession::path(const LockName& name, std::string_view node) const {
  return directory(name) + "/" + std::string(node);
}

void ZkSession::forget(const PlacePtr& place) {
  places_.erase(place->nonce);
  if (heartbeat_ != nullptr) heartbeat_->set_active(!places_.empty());
}

// ---- joining

// Create and list go out back to back and are answered in order.
struct ZkSession::JoinTry {
  PlacePtr place;
  int tries = 0;
  Answer<Standing> answer;
  ZkReply made;
};

void ZkSession::join(const LockName& name, Nonce nonce, Answer<Standing> answer) {
  const auto known = places_.find(nonce);
  if (known == places_.end()) {
    auto place = std::make_shared<Place>(name, nonce, zk_entry_id(parts_.client_id, nonce));
    places_.emplace(nonce, place);
    heartbeat_->set_active(true);
    create(place, 0, std::move(answer));
    return;
  }
  const auto place = known->second;
  if (place->state == Place::State::there) {
    look(name, nonce, std::move(answer));
    return;
  }
  find(place, [this, place, answer = std::move(answer)](const Result<std::string>& node) mutable {
    if (!node) {
      answer(node.error());
    } else if (node->empty()) {
      create(place, 0, std::move(answer));
    } else {
      adopt(place, *node, std::move(answer));
    }
  });
}

void ZkSession::create(const PlacePtr& place, int tries, Answer<Standing> answer) {
  if (place->withdrawn) {
    // Given up while we were finding out: whoever withdraws must not find nothing, and then this.
    answer(Error(Errc::cancelled, "join " + directory(place->name) + ": given up"));
    return;
  }
  const auto attempt = std::make_shared<JoinTry>();
  attempt->place = place;
  attempt->tries = tries;
  attempt->answer = std::move(answer);
  place->state = Place::State::joining;
  place->attempt = attempt;
  ZkRequest request{ZkRequest::Kind::create_entry, path(place->name, zk_entry_prefix(place->id)),
                    zk_encode_label(parts_.label)};
  place->create_request = outbox_.ask(std::move(request), [attempt](ZkReply& reply, std::uint64_t) {
    attempt->made = std::move(reply);
  });
  lister_.read(directory(place->name), ZkLister::Freshness::session,
               [this, attempt](const ZkListing& listing) { created(attempt, listing); });
}

void ZkSession::created(const std::shared_ptr<JoinTry>& attempt, const ZkListing& listing) {
  const auto& place = attempt->place;
  const ZkReply& made = attempt->made;
  const std::string what = "join " + directory(place->name);
  std::optional<Result<Standing>> outcome;
  if (made.status == ZkStatus::ok) {
    place->state = Place::State::there;
    place->node = made.path.substr(made.path.rfind('/') + 1);
    place->sequence = zk_sequence(place->node).value_or(kLastSequence);
    place->token = made.created_at;
    outcome = standing(place, listing);
  } else if (made.status == ZkStatus::lost) {
    place->state = Place::State::in_doubt;
    outcome = zk_error(made.status, made.code, what);
  } else if (made.status == ZkStatus::no_node && !place->withdrawn) {
    make_parents(place, attempt->tries, std::move(attempt->answer));
    return;
  } else {
    forget(place);
    outcome = zk_error(made.status, made.code, what);
  }
  for (auto& gone : std::exchange(place->gone, {})) {
    withdraw(place->name, place->nonce, std::move(gone));  // given up while it was on its way
  }
  attempt->answer(*std::move(outcome));
}

void ZkSession::make_parents(const PlacePtr& place, int tries, Answer<Standing> answer) {
  const std::string where = directory(place->name);
  if (tries >= kMostTries) {
    forget(place);
    answer(Error(Errc::store_error, "join " + where + ": the directory keeps vanishing"));
    return;
  }
  const auto kind =
      permanent_parents_ ? ZkRequest::Kind::create_permanent : ZkRequest::Kind::create_container;
  // Of every level the worst that was said; that a level is there already is fine. Levels above may
  // be out of our reach: only what the last attempt says counts.
  auto refused = std::make_shared<std::optional<ZkReply>>();
  const auto levels = zk_ancestors(where);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const bool last = i + 1 == levels.size();
    outbox_.ask({kind, levels[i], {}}, [this, place, tries, refused, last, where, kind,
                                        answer = last ? std::exchange(answer, nullptr) : nullptr](
                                           ZkReply& reply, std::uint64_t) mutable {
      const bool there = reply.status == ZkStatus::ok || reply.status == ZkStatus::node_exists;
      if (!there && reply.status != ZkStatus::no_node) *refused = reply;
      if (!last) return;
      if (place->withdrawn) {  // nothing was made, and nothing will be
        forget(place);
        for (auto& gone : std::exchange(place->gone, {})) gone(Done{});
        answer(Error(Errc::cancelled, "join " + where + ": given up"));
      } else if (!there && *refused && (*refused)->status == ZkStatus::unimplemented &&
                 kind == ZkRequest::Kind::create_container) {
        permanent_parents_ = true;  // a server without containers
        create(place, tries + 1, std::move(answer));
      } else if (!there && *refused) {
        forget(place);  // no entry was made: the next join begins anew
        answer(zk_error((*refused)->status, (*refused)->code, "make " + where));
      } else {
        create(place, tries + 1, std::move(answer));
      }
    });
  }
}

// ---- a create whose answer was lost

void ZkSession::find(const PlacePtr& place, Answer<std::string> answer) {
  // The session is the same, so whatever the old connection still had under way was decided before
  // this sync: a list without our node proves that it is not, and will not be.
  const auto freshness = mutant(Mutant::find_without_sync) ? ZkLister::Freshness::session
                                                           : ZkLister::Freshness::synced;
  lister_.read(directory(place->name), freshness,
               [this, place, answer = std::move(answer)](const ZkListing& listing) mutable {
                 if (listing.status != ZkStatus::ok && listing.status != ZkStatus::no_node) {
                   answer(zk_error(listing.status, listing.code, "list " + directory(place->name)));
                   return;
                 }
                 const std::string prefix = zk_entry_prefix(place->id);
                 const auto& entries = listing.queue.entries;
                 const auto mine = std::find_if(
                     entries.begin(), entries.end(),
                     [&](const ZkEntry& entry) { return entry.name.starts_with(prefix); });
                 answer(mine == entries.end() ? std::string() : mine->name);
               });
}

void ZkSession::adopt(const PlacePtr& place, const std::string& node, Answer<Standing> answer) {
  outbox_.ask(
      {ZkRequest::Kind::get, path(place->name, node), {}},
      [this, place, node, answer = std::move(answer)](ZkReply& reply, std::uint64_t) mutable {
        if (reply.status == ZkStatus::ok && reply.owner == connection_.session) {
          place->state = Place::State::there;
          place->node = node;
          place->sequence = zk_sequence(node).value_or(kLastSequence);
          place->token = reply.created_at;
          look(place->name, place->nonce, std::move(answer));
        } else if (reply.status == ZkStatus::ok || reply.status == ZkStatus::no_node) {
          create(place, 0, std::move(answer));  // another session's, about to go; or gone
        } else {
          answer(zk_error(reply.status, reply.code, "read " + path(place->name, node)));
        }
      });
}

// ---- where we stand

Result<Standing> ZkSession::standing(const PlacePtr& place, const ZkListing& listing) const {
  if (listing.status == ZkStatus::no_node) return Standing{};
  if (listing.status != ZkStatus::ok) {
    return zk_error(listing.status, listing.code, "list " + directory(place->name));
  }
  if (zk_exhausted(place->sequence) && !mutant(Mutant::ties_by_name)) {
    return Error(Errc::store_error,
                 "the directory " + directory(place->name) +
                     " has given out its last number (2147483647), so the order of its entries "
                     "is lost: nobody gets this lock. Remove the directory once it is empty; a "
                     "container vanishes by itself a minute or two after its last entry");
  }
  Standing result;
  const auto position = zk_position(listing.queue, place->sequence, place->node);
  if (!position) return result;
  result.token = place->token;
  if (position->predecessor != nullptr) {
    const auto& before =
        mutant(Mutant::herd) ? listing.queue.entries.front() : *position->predecessor;
    result.view.omitted_ahead = position->ahead - 1;
    result.view.tickets.push_back({zk_rank(before.sequence, false), before.name, std::nullopt});
  }
  result.view.tickets.push_back({zk_rank(place->sequence, true), place->node, place->nonce});
  return result;
}

void ZkSession::look(const LockName& name, Nonce nonce, Answer<Standing> answer) {
  const auto known = places_.find(nonce);
  if (known == places_.end() || known->second->state != Place::State::there) {
    parts_.loop->defer([answer = std::move(answer)]() mutable { answer(Standing{}); });
    return;
  }
  // What watches on other sessions have told may not have reached our server yet.
  const bool synced = !side_lines_.empty();
  const auto place = known->second;
  lister_.read(directory(name), synced ? ZkLister::Freshness::synced : ZkLister::Freshness::session,
               [this, place, synced, answer = std::move(answer)](const ZkListing& listing) mutable {
                 auto where = standing(place, listing);
                 if (synced || !where || !where->view.tickets.empty()) {
                   answer(std::move(where));
                   return;
                 }
                 // Our ticket is not in the list. A hold would end for that: let the leader say it.
                 lister_.read(
                     directory(place->name), ZkLister::Freshness::synced,
                     [this, place, answer = std::move(answer)](const ZkListing& sure) mutable {
                       answer(standing(place, sure));
                     });
               });
}

void ZkSession::peek(const LockName& name, Answer<bool> busy) {
  lister_.read(directory(name), ZkLister::Freshness::synced,
               [this, name, busy = std::move(busy)](const ZkListing& listing) mutable {
                 if (listing.status == ZkStatus::ok || listing.status == ZkStatus::no_node) {
                   busy(!listing.queue.entries.empty());
                 } else {
                   busy(zk_error(listing.status, listing.code, "list " + directory(name)));
                 }
               });
}

// ---- leaving

void ZkSession::withdraw(const LockName&, Nonce nonce, Answer<Done> answer) {
  const auto known = places_.find(nonce);
  if (known == places_.end()) {
    parts_.loop->defer([answer = std::move(answer)]() mutable { answer(Done{}); });
    return;
  }
  const auto place = known->second;
  place->withdrawn = true;
  switch (place->state) {
    case Place::State::joining:
      if (outbox_.recall(place->create_request)) {
        forget(place);
        if (const auto attempt = place->attempt.lock()) {
          attempt->made.status = ZkStatus::failed;  // never sent
        }
        parts_.loop->defer([answer = std::move(answer)]() mutable { answer(Done{}); });
        return;
      }
      place->gone.push_back(std::move(answer));
      return;
    case Place::State::there:
      remove(place, std::move(answer));
      return;
    case Place::State::in_doubt:
      find(place,
           [this, place, answer = std::move(answer)](const Result<std::string>& node) mutable {
             if (!node) {
               answer(node.error());
             } else if (node->empty()) {
               forget(place);
               answer(Done{});
             } else {
               place->node = *node;
               remove(place, std::move(answer));
             }
           });
      return;
  }
}

void ZkSession::remove(const PlacePtr& place, Answer<Done> answer) {
  const std::string node = path(place->name, place->node);
  watches_.going(node);
  outbox_.ask({ZkRequest::Kind::remove, node, {}}, [this, place, node, answer = std::move(answer)](
                                                       ZkReply& reply, std::uint64_t) mutable {
    if (reply.status == ZkStatus::ok || reply.status == ZkStatus::no_node) {
      forget(place);
      answer(Done{reply.status == ZkStatus::ok || place->removal_in_doubt});
    } else {
      place->removal_in_doubt |= reply.status == ZkStatus::lost;
      answer(zk_error(reply.status, reply.code, "remove " + node));
    }
  });
}

// ---- watches

WatchId ZkSession::watch(const LockName& name, const Ticket& ticket, const WatchFor& what,
                         WatchHandler handler) {
  std::optional<std::string> mine;
  if (what.waiter) {
    if (const auto place = places_.find(*what.waiter); place != places_.end()) {
      mine = path(name, place->second->node);
    }
  }
  return watches_.watch(path(name, ticket.id), std::move(mine), what.soon, std::move(handler));
}

void ZkSession::unwatch(WatchId id) { watches_.unwatch(id); }

}  // namespace baton::internal
