// Session: watches the keys of predecessors, and verifies holds.
#include "common/base/mutant.h"
#include "etcd/path.h"
#include "etcd/session.h"

#include <algorithm>
#include <utility>

namespace baton::etcd {

WatchId Session::watch(const LockName& name, const Ticket& ticket, const WatchFor& what,
                       WatchHandler handler) {
  Watches::Want want;
  const std::string where = context_.prefix(name);
  const auto id = parse_entry_id(ticket.id);
  want.key = where + (id ? id->suffix : ticket.id);
  want.created = static_cast<std::int64_t>(ticket.rank);
  if (ticket.ours) return key_loss_.watch(std::move(want), *ticket.ours, std::move(handler));
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
