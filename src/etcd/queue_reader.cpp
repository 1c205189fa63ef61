#include "etcd/queue_reader.h"

#include "etcd/path.h"
#include "etcd/queue.h"

#include <algorithm>
#include <string>
#include <utility>

namespace baton::etcd {

void QueueReader::deliver(const OwnTicketPtr& ticket, const etcdpb::RangeResponse& reading,
                          std::int64_t revision, Answer<Standing> answer) {
  auto result = read_queue(ticket->prefix, ticket->key, ticket->token, ticket->nonce, reading);
  if (result.incomplete) {
    look_at_all(ticket, 0, std::move(answer));
    return;
  }
  // This read is older than the deletion of our key, which its watch has already reported: another
  // client may hold the lock now. Read again, once for each deletion. The second result counts.
  if (revision < ticket->gone_at &&
      std::exchange(ticket->doubted_at, ticket->gone_at) != ticket->gone_at) {
    look_at_all(ticket, static_cast<std::int64_t>(ticket->token), std::move(answer));
    return;
  }
  ticket->seen = std::max(ticket->seen, revision);
  ticket->told = revision;
  result.standing.sign = ticket->sign;
  answer(std::move(result.standing));
}

void QueueReader::look(Nonce nonce, const LookHint& hint, Answer<Standing> answer) {
  const auto ticket = tickets_.find(nonce);
  if (ticket == nullptr || !is_present(ticket->state())) {
    context_.loop.defer(
        context_.lifetime.guard([answer = std::move(answer)]() mutable { answer(Standing{}); }));
    return;
  }
  // Use only a hint that is newer than every delivered read. A read at an older revision could show
  // a predecessor that is already gone, and a watch of its key would start after the deletion and
  // never fire. If our own key was deleted since, only the cluster can tell.
  if (hint.revision > std::max(ticket->seen, ticket->gone_at)) {
    look_pinned(ticket, hint, std::move(answer));
  } else {
    look_at_all(ticket, static_cast<std::int64_t>(ticket->token), std::move(answer));
  }
}

void QueueReader::look_at_all(const OwnTicketPtr& ticket, std::int64_t newest,
                              Answer<Standing> answer) {
  reads_.read(
      ticket->prefix, newest,
      [this, ticket, answer = std::move(answer)](Reply<etcdpb::RangeResponse>& reply) mutable {
        if (reply.ok()) {
          deliver(ticket, reply.body, reply.body.header().revision(), std::move(answer));
        } else {
          answer(reply.error("look at " + ticket->prefix));
        }
      });
}

// Reads from the member that reported the change, at the revision of the change, without the other
// members. This is safe: the read shows a true state of the past, entries ahead never come back,
// and the watch of our own key reports its deletion.
void QueueReader::look_pinned(const OwnTicketPtr& ticket, const LookHint& hint,
                              Answer<Standing> answer) {
  auto request = short_range(ticket->prefix, static_cast<std::int64_t>(ticket->token));
  request.set_revision(hint.revision);
  request.set_serializable(true);
  RequestOptions how;
  how.endpoint = hint.server;
  how.linearizable = false;
  how.timeout = kPinnedPatience;
  context_.link.ask<etcdpb::RangeResponse>(
      Call::range, request, how,
      context_.lifetime.guard([this, ticket, revision = hint.revision, answer = std::move(answer)](
                                  Reply<etcdpb::RangeResponse>& reply) mutable {
        if (reply.ok()) {
          deliver(ticket, reply.body, revision, std::move(answer));
        } else {
          // The member has not reached the revision yet, has compacted it, or cannot be reached.
          look_at_all(ticket, static_cast<std::int64_t>(ticket->token), std::move(answer));
        }
      }));
}

void QueueReader::peek(const LockName& name, Answer<bool> busy) {
  const std::string where = context_.prefix(name);
  sequencer_.peek(where, [this, where, busy = std::move(busy)](bool go) mutable {
    if (go) {
      peek_now(where, std::move(busy));
      return;
    }
    context_.loop.defer(context_.lifetime.guard(
        [text = context_.link.trouble(), where, busy = std::move(busy)]() mutable {
          busy(Error(Errc::connection_failed, "look at " + where + ": " + text));
        }));
  });
}

void QueueReader::peek_now(const std::string& where, Answer<bool> busy) {
  auto request = full_range(where);
  request.set_limit(kShortReading);
  context_.link.ask<etcdpb::RangeResponse>(
      Call::range, request, {},
      context_.lifetime.guard(
          [this, where, busy = std::move(busy)](Reply<etcdpb::RangeResponse>& reply) mutable {
            if (!reply.ok()) {
              busy(reply.error("look at " + where));
              return;
            }
            for (const auto& kv : reply.body.kvs()) {
              if (is_direct_entry(where, kv.key())) {
                busy(true);
                return;
              }
            }
            if (!reply.body.more()) {
              busy(false);
              return;
            }
            // So far the read shows only entries of locks below this one.
            reads_.read(where, kAllKeys,
                        [where, busy = std::move(busy)](Reply<etcdpb::RangeResponse>& all) mutable {
                          if (!all.ok()) {
                            busy(all.error("look at " + where));
                            return;
                          }
                          bool any = false;
                          for (const auto& kv : all.body.kvs())
                            any |= is_direct_entry(where, kv.key());
                          busy(any);
                        });
          }));
}

WatchId QueueReader::watch(Watches::Want want, const std::optional<Nonce>& waiter,
                           WatchHandler handler) {
  if (waiter) {
    if (const auto own = tickets_.find(*waiter)) want.known = own->told;
  }
  return watches_.watch(
      std::move(want), [handler = std::move(handler)](const WatchNews& news) mutable {
        // Never grant the lock because the predecessor's key is gone: our own key may be gone as
        // well. Its watch is another watcher, and etcd guarantees no order between two watchers.
        const auto hint = news.pinned ? LookHint{news.revision, news.endpoint} : LookHint{};
        handler({WatchEvent::look, hint});
      });
}

}  // namespace baton::etcd
