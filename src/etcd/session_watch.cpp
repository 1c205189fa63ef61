// Session: watches its own keys and those of predecessors, and verifies holds.
#include "common/base/mutant.h"
#include "etcd/path.h"
#include "etcd/session.h"

#include <algorithm>
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

// Our key is gone. Asks whether its lease is gone as well, because then the whole session is over.
// Asks once for all keys of a lease. Without an answer in kOwnKeyPatience, only these keys count as
// gone: a holder must learn of its loss soon.
void Session::own_key_gone(const OwnTicketPtr& ticket, WatchHandler handler) {
  const std::int64_t lease = ticket->lease;
  auto& group = key_losses_[lease];
  group.tickets.emplace_back(ticket, std::move(handler));
  if (group.tickets.size() > 1) return;
  const std::uint64_t question = group.question = ++questions_;
  group.timer = loop().at(loop().now() + kOwnKeyPatience,
                          [this, lease, question] { key_loss_answered(lease, question, false); });
  etcdpb::LeaseTimeToLiveRequest request;
  request.set_id(lease);
  RequestOptions how;
  how.linearizable = false;
  how.bypass_limit = true;
  how.timeout = kOwnKeyPatience;
  link_.ask<etcdpb::LeaseTimeToLiveResponse>(
      Call::lease_time_to_live, request, how,
      lifetime_.guard([this, lease, question](Reply<etcdpb::LeaseTimeToLiveResponse>& reply) {
        key_loss_answered(lease, question,
                          reply.ok() && reply.body.ttl() < 0);  // 0: less than a second is left
      }));
}

void Session::key_loss_answered(std::int64_t lease, std::uint64_t question, bool lease_gone) {
  const auto found = key_losses_.find(lease);
  if (found == key_losses_.end() || found->second.question != question) return;  // an old answer
  auto group = key_losses_.extract(found);
  loop().cancel(group.mapped().timer);
  auto& tickets = group.mapped().tickets;
  if (lease_gone && std::any_of(tickets.begin(), tickets.end(),
                                [&](const auto& each) { return tickets_.wanted(each.first); })) {
    end_session(Errc::session_expired, "the store has ended lease " + std::to_string(lease));
    return;
  }
  const auto alive = lifetime_.watch();
  for (auto& [ticket, handler] : tickets) {
    if (ticket->sign != nullptr) ticket->sign->set();
    if (tickets_.wanted(ticket)) handler(WatchEvent::look);
    if (!alive) return;  // the handler may have destroyed this
  }
}

WatchId Session::watch(const LockName& name, const Ticket& ticket, const WatchFor& what,
                       WatchHandler handler) {
  Watches::Want want;
  const std::string where = context_.prefix(name);
  const auto id = parse_entry_id(ticket.id);
  want.key = where + (id ? id->suffix : ticket.id);
  want.created = static_cast<std::int64_t>(ticket.rank);
  if (ticket.ours) {
    // The caller's own ticket. A watch that starts at a known revision is served up to 100 ms late,
    // and needs no look.
    const auto own = tickets_.find(*ticket.ours);
    want.known = own == nullptr ? want.created : std::max(own->seen, want.created);
    want.from_known = true;
    want.delay = Nanos(kOwnWatchDelay);
    return watches_.watch(std::move(want),
                          [this, own, handler = std::move(handler)](const WatchNews& news) mutable {
                            if (own != nullptr && news.gone) {
                              own->gone_at = std::max(own->gone_at, news.revision);
                              own_key_gone(own, std::move(handler));
                            } else {
                              handler(WatchEvent::look);
                            }
                          });
  }
  if (what.waiter) {
    if (const auto own = tickets_.find(*what.waiter)) want.known = own->told;
  }
  return watches_.watch(
      std::move(want), [handler = std::move(handler)](const WatchNews& news) mutable {
        // Never grant the lock because the predecessor's key is gone: our own key
        // may be gone as well. Its watch is another watcher, and etcd guarantees
        // no order between two watchers.
        const bool believed = mutant(Mutant::compaction_is_gone) && news.gone;
        const auto kind = believed ? WatchEvent::gone : WatchEvent::look;
        handler({kind, news.pinned ? LookHint{news.revision, news.endpoint} : LookHint{}});
      });
}

void Session::verify(const LockName& name, Nonce nonce, Answer<bool> answer) {
  verify_by(question_deadline(), name, nonce, std::move(answer));
}

void Session::verify_by(Time until, const LockName& name, Nonce nonce, Answer<bool> answer) {
  const auto ticket = tickets_.find(nonce);
  if (ticket == nullptr || !is_present(ticket->state())) {
    loop().defer(lifetime_.guard([answer = std::move(answer)]() mutable { answer(false); }));
    return;
  }
  look_at_all(
      ticket, static_cast<std::int64_t>(ticket->token),
      [this, until, name, nonce, answer = std::move(answer)](Result<Standing> result) mutable {
        if (!result && transient(result.error()) && loop().now() < until) {
          retries_.later([this, until, name, nonce, answer = std::move(answer)]() mutable {
            verify_by(until, name, nonce, std::move(answer));
          });
        } else if (!result) {
          answer(result.error());
        } else {
          answer(result->view.tickets.size() == 1 && result->view.omitted_ahead == 0);
        }
      });
}

}  // namespace baton::etcd
