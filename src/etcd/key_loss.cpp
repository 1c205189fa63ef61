#include "etcd/key_loss.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace baton::etcd {

using std::chrono::milliseconds;

namespace {
// Most holds and waits are shorter than this, and need no watch of their own key.
constexpr milliseconds kOwnWatchDelay{100};
// When the key of a hold is gone, wait at most this long for the answer whether its lease is gone
// as well.
constexpr milliseconds kOwnKeyPatience{300};
}  // namespace

KeyLoss::KeyLoss(const SessionContext& context, Watches& watches, const OwnTickets& tickets,
                 LeaseGone lease_gone)
    : context_(context), watches_(watches), tickets_(tickets), lease_gone_(std::move(lease_gone)) {}

KeyLoss::~KeyLoss() {
  for (const auto& [lease, group] : pending_) context_.loop.cancel(group.timer);
}

WatchId KeyLoss::watch(Watches::Want want, Nonce nonce, WatchHandler handler) {
  // A watch that starts at a known revision is served up to 100 ms late, and needs no look.
  const auto own = tickets_.find(nonce);
  want.known = own == nullptr ? want.created : std::max(own->seen, want.created);
  want.from_known = true;
  want.delay = Nanos(kOwnWatchDelay);
  return watches_.watch(std::move(want),
                        [this, own, handler = std::move(handler)](const WatchNews& news) mutable {
                          if (own != nullptr && news.gone) {
                            own->gone_at = std::max(own->gone_at, news.revision);
                            key_gone(own, std::move(handler));
                          } else {
                            handler(WatchEvent::look);
                          }
                        });
}

// Our key is gone. Asks whether its lease is gone as well, because then the whole session is over.
// Asks once for all keys of a lease. Without an answer in kOwnKeyPatience, only these keys count as
// gone: a holder must learn of its loss soon.
void KeyLoss::key_gone(const OwnTicketPtr& ticket, WatchHandler handler) {
  const std::int64_t lease = ticket->lease;
  auto& group = pending_[lease];
  group.tickets.emplace_back(ticket, std::move(handler));
  if (group.tickets.size() > 1) return;
  const std::uint64_t question = group.question = ++questions_;
  group.timer = context_.loop.at(context_.loop.now() + kOwnKeyPatience,
                                 [this, lease, question] { answered(lease, question, false); });
  etcdpb::LeaseTimeToLiveRequest request;
  request.set_id(lease);
  RequestOptions how;
  how.linearizable = false;
  how.bypass_limit = true;
  how.timeout = kOwnKeyPatience;
  context_.link.ask<etcdpb::LeaseTimeToLiveResponse>(
      Call::lease_time_to_live, request, how,
      context_.lifetime.guard(
          [this, lease, question](Reply<etcdpb::LeaseTimeToLiveResponse>& reply) {
            answered(lease, question,
                     reply.ok() && reply.body.ttl() < 0);  // 0: less than a second is left
          }));
}

void KeyLoss::answered(std::int64_t lease, std::uint64_t question, bool lease_gone) {
  const auto found = pending_.find(lease);
  if (found == pending_.end() || found->second.question != question) return;  // an old answer
  auto group = pending_.extract(found);
  context_.loop.cancel(group.mapped().timer);
  auto& tickets = group.mapped().tickets;
  if (lease_gone && std::any_of(tickets.begin(), tickets.end(),
                                [&](const auto& each) { return tickets_.wanted(each.first); })) {
    lease_gone_("the store has ended lease " + std::to_string(lease));
    return;
  }
  const auto alive = context_.lifetime.watch();
  for (auto& [ticket, handler] : tickets) {
    if (ticket->sign != nullptr) ticket->sign->set();
    if (tickets_.wanted(ticket)) handler(WatchEvent::look);
    if (!alive) return;  // the handler may have destroyed this
  }
}

}  // namespace baton::etcd
