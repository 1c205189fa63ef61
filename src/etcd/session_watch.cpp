// Whether our keys are still there, and who stands ahead of them: what an EtcdSession watches, and
// asks.
#include "common/base/mutant.h"
#include "etcd/path.h"
#include "etcd/session.h"

#include <algorithm>
#include <utility>

namespace baton::internal {

using std::chrono::milliseconds;

namespace {
// Most holds and waits are shorter, and need no watch of their own key.
constexpr milliseconds kOwnWatchDelay{100};
// How long a hold whose key is gone may wait to hear whether its lease is gone, too.
constexpr milliseconds kOwnKeyPatience{300};
}  // namespace

// Alone, or with its lease? Then it is the session that is over. Asked once for all keys of a
// lease, and no longer than a holder may go on believing, whatever becomes of the question.
void EtcdSession::own_key_gone(const PlacePtr& place, WatchHandler handler) {
  const std::int64_t lease = place->lease;
  auto& group = bereaved_[lease];
  group.places.emplace_back(place, std::move(handler));
  if (group.places.size() > 1) return;
  const std::uint64_t question = group.question = ++questions_;
  group.timer = loop().at(loop().now() + kOwnKeyPatience,
                          [this, lease, question] { bereaved(lease, question, false); });
  etcdpb::LeaseTimeToLiveRequest request;
  request.set_id(lease);
  EtcdHow how;
  how.fresh = false;
  how.urgent = true;
  how.timeout = kOwnKeyPatience;
  link_.ask<etcdpb::LeaseTimeToLiveResponse>(
      EtcdCall::lease_time_to_live, request, how,
      [this, alive = alive_, lease, question](EtcdReply<etcdpb::LeaseTimeToLiveResponse>& reply) {
        if (!*alive) return;
        bereaved(lease, question,
                 reply.ok() && reply.body.ttl() < 0);  // 0: less than a second is left
      });
}

void EtcdSession::bereaved(std::int64_t lease, std::uint64_t question, bool lease_gone) {
  const auto found = bereaved_.find(lease);
  if (found == bereaved_.end() || found->second.question != question) return;  // too late
  auto group = bereaved_.extract(found);
  loop().cancel(group.mapped().timer);
  const auto ours = [this](const PlacePtr& place) {
    const auto known = places_.find(place->nonce);
    return known != places_.end() && known->second == place && !place->withdrawn;
  };
  auto& places = group.mapped().places;
  if (lease_gone && std::any_of(places.begin(), places.end(),
                                [&](const auto& each) { return ours(each.first); })) {
    over(Errc::session_expired, "the store has ended lease " + std::to_string(lease));
    return;
  }
  const auto alive = alive_;
  for (auto& [place, handler] : places) {
    if (place->sign != nullptr) place->sign->set();
    if (ours(place)) handler(WatchEvent::look);
    if (!*alive) return;
  }
}

WatchId EtcdSession::watch(const LockName& name, const Ticket& ticket, const WatchFor& what,
                           WatchHandler handler) {
  EtcdWatches::Want want;
  const std::string where = prefix(name);
  const auto id = etcd_parse_entry_id(ticket.id);
  want.key = where + (id ? id->suffix : ticket.id);
  want.created = static_cast<std::int64_t>(ticket.rank);
  if (ticket.ours) {
    // My own. A watch from a known revision is served late, by 100 ms at most, and needs no look.
    const auto mine = places_.find(*ticket.ours);
    const auto place = mine == places_.end() ? nullptr : mine->second;
    want.known = place == nullptr ? want.created : std::max(place->seen, want.created);
    want.from_known = true;
    want.delay = Nanos(kOwnWatchDelay);
    return watches_.watch(
        std::move(want), [this, place, handler = std::move(handler)](const EtcdNews& news) mutable {
          if (place != nullptr) place->pin.reset();  // the cluster must say what is true now
          if (place != nullptr && news.gone) {
            place->gone_at = std::max(place->gone_at, news.revision);
            own_key_gone(place, std::move(handler));
          } else {
            handler(WatchEvent::look);
          }
        });
  }
  PlacePtr waiter;
  if (what.waiter) {
    if (const auto place = places_.find(*what.waiter); place != places_.end()) {
      waiter = place->second;
      want.known = waiter->told;
    }
  }
  return watches_.watch(std::move(want),
                        [waiter, handler = std::move(handler)](const EtcdNews& news) mutable {
                          if (waiter != nullptr && news.pinned && news.revision > waiter->seen) {
                            waiter->pin = news;
                          }
                          // Never "gone means mine": the watch of our own key is another watcher,
                          // and etcd keeps no order between two.
                          const bool believed = mutant(Mutant::compaction_is_gone) && news.gone;
                          handler(believed ? WatchEvent::gone : WatchEvent::look);
                        });
}

void EtcdSession::verify(const LockName& name, Nonce nonce, Answer<bool> answer) {
  const auto known = places_.find(nonce);
  if (known == places_.end() || known->second->state != Place::State::there) {
    loop().defer([alive = alive_, answer = std::move(answer)]() mutable {
      if (*alive) answer(false);
    });
    return;
  }
  const auto place = known->second;
  look_at_all(place, static_cast<std::int64_t>(place->token),
              [this, name, nonce, answer = std::move(answer)](Result<Standing> result) mutable {
                if (!result && transient(result.error())) {
                  again([this, name, nonce, answer = std::move(answer)]() mutable {
                    verify(name, nonce, std::move(answer));
                  });
                } else if (!result) {
                  answer(result.error());
                } else {
                  answer(result->view.tickets.size() == 1 && result->view.omitted_ahead == 0);
                }
              });
}

}  // namespace baton::internal
