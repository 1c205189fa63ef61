#include "etcd/operator_calls.h"

#include "common/seam/token_base.h"
#include "etcd/path.h"
#include "etcd/queue.h"

#include <algorithm>
#include <utility>

namespace baton::etcd {

namespace {

constexpr std::int64_t kPage = 5'000;

Entry make_entry(const std::string& prefix, const etcdpb::KeyValue& kv) {
  Entry entry;
  entry.id = format_entry_id(prefix, kv.key(), kv.create_revision());
  entry.token = static_cast<std::uint64_t>(kv.create_revision());
  if (auto value = decode_value(kv.value())) {
    entry.label = std::move(value->label);
    entry.since = value->since;
  } else {
    entry.label = "unknown";
  }
  return entry;
}

}  // namespace

void OperatorCalls::inspect(Time until, const LockName& name, Answer<LockSnapshot> answer) {
  // Wait for our own removals: the snapshot must not show tickets that this client has withdrawn.
  sequencer_.peek(context_.prefix(name),
                  [this, until, name, answer = std::move(answer)](bool) mutable {
                    inspect_now(until, name, std::move(answer));
                  });
}

void OperatorCalls::inspect_now(Time until, const LockName& name, Answer<LockSnapshot> answer) {
  const std::string where = context_.prefix(name);
  auto request = full_range(where);
  request.set_keys_only(false);
  context_.link.ask<etcdpb::RangeResponse>(
      Call::range, request, {},
      context_.lifetime.guard([this, until, name, where, answer = std::move(answer)](
                                  Reply<etcdpb::RangeResponse>& reply) mutable {
        if (is_transient(reply.status) && context_.loop.now() < until) {
          context_.retries.later([this, until, name, answer = std::move(answer)]() mutable {
            inspect(until, name, std::move(answer));
          });
          return;
        }
        if (!reply.ok()) {
          answer(reply.error("read " + where));
          return;
        }
        LockSnapshot snapshot;
        snapshot.name = name.text();
        for (const auto& kv : reply.body.kvs()) {
          if (is_direct_entry(where, kv.key())) snapshot.entries.push_back(make_entry(where, kv));
        }
        std::sort(snapshot.entries.begin(), snapshot.entries.end(),
                  [](const Entry& a, const Entry& b) { return a.token < b.token; });
        answer(std::move(snapshot));
      }));
}

// ---- evict

struct OperatorCalls::Eviction {
  std::string key;
  std::int64_t created = 0;  // 0: any create revision
  bool possible = true;      // false: no entry can have this id
  Time until{};
  bool in_doubt = false;  // an answer was lost: our removal may have succeeded
  Answer<bool> answer;
};

void OperatorCalls::evict(Time until, const LockName& name, std::string_view entry_id,
                          Answer<bool> answer) {
  const auto id = parse_entry_id(entry_id);
  // Ask the store even for an id that no entry can have, so that a caller without permission or
  // without a connection gets that error. Nothing is removed in this case, even if the prefix
  // itself is a key.
  auto eviction = std::make_shared<Eviction>();
  eviction->possible = id && id->suffix != kTokenBaseName;
  eviction->key = context_.prefix(name) + (id ? id->suffix : "");
  eviction->created = id ? id->revision : 0;
  eviction->until = until;
  eviction->answer = std::move(answer);
  try_evict(eviction);
}

void OperatorCalls::try_evict(const std::shared_ptr<Eviction>& eviction) {
  etcdpb::RangeRequest request;
  request.set_key(eviction->key);
  request.set_keys_only(true);
  // Returns true if it has scheduled a retry.
  const auto retry = [this, eviction](Status status) {
    if (!is_transient(status) || context_.loop.now() >= eviction->until) return false;
    context_.retries.later([this, eviction] { try_evict(eviction); });
    return true;
  };
  context_.link.ask<etcdpb::RangeResponse>(
      Call::range, request, {},
      context_.lifetime.guard([this, eviction, retry](Reply<etcdpb::RangeResponse>& found) {
        if (retry(found.status)) return;
        if (!found.ok()) {
          eviction->answer(found.error("read " + eviction->key));
          return;
        }
        const std::int64_t now = found.body.kvs_size() == 0 || !eviction->possible
                                     ? 0
                                     : found.body.kvs(0).create_revision();
        if (now == 0 || (eviction->created != 0 && now != eviction->created)) {
          eviction->answer(eviction->in_doubt);  // gone; if in doubt, most likely removed by us
          return;
        }
        eviction->created = now;
        // Do not send the removal after the caller's deadline, when the caller was told that it did
        // not happen. Checked again when the request has waited for a token or for the limit.
        RequestOptions how;
        how.wanted = context_.lifetime.guard_or(
            false, [this, eviction] { return context_.loop.now() < eviction->until; });
        etcdpb::TxnRequest txn;
        auto& compare = *txn.add_compare();
        compare.set_key(eviction->key);
        compare.set_target(etcdpb::Compare::CREATE);
        compare.set_result(etcdpb::Compare::EQUAL);
        compare.set_create_revision(now);
        txn.add_success()->mutable_request_delete_range()->set_key(eviction->key);
        context_.link.ask<etcdpb::TxnResponse>(
            Call::txn, txn, how,
            context_.lifetime.guard([eviction, retry](Reply<etcdpb::TxnResponse>& reply) {
              eviction->in_doubt |= reply.status == Status::lost;
              if (retry(reply.status)) return;
              if (!reply.ok()) {
                eviction->answer(reply.error("remove " + eviction->key));
              } else {
                eviction->answer(reply.body.succeeded() || eviction->in_doubt);
              }
            }));
      }));
}

// ---- list: page by page, all pages at one revision

struct OperatorCalls::Listing {
  std::string prefix;
  std::string next;  // the first key of the next page
  std::string end;
  std::int64_t revision = 0;
  Time until{};
  std::set<std::string> found;
  Answer<std::vector<std::string>> answer;
};

void OperatorCalls::list(Time until, std::string_view wanted,
                         Answer<std::vector<std::string>> answer) {
  auto listing = std::make_shared<Listing>();
  listing->prefix = wanted;
  listing->until = until;
  const std::string below =
      (context_.parts.root.empty() ? "" : context_.parts.root + "/") + listing->prefix;
  listing->next = below.empty() ? std::string(1, '\0') : below;
  listing->end = range_end_of(below);
  listing->answer = std::move(answer);
  list_on(listing);
}

void OperatorCalls::list_on(const std::shared_ptr<Listing>& listing) {
  etcdpb::RangeRequest request;
  request.set_key(listing->next);
  request.set_range_end(listing->end);
  request.set_keys_only(true);
  request.set_limit(kPage);
  request.set_revision(listing->revision);
  context_.link.ask<etcdpb::RangeResponse>(
      Call::range, request, {},
      context_.lifetime.guard([this, listing](Reply<etcdpb::RangeResponse>& reply) {
        if ((is_transient(reply.status) || reply.status == Status::bad_revision) &&
            context_.loop.now() < listing->until) {
          // The revision was compacted meanwhile, or no server answered: start from the beginning.
          context_.retries.later([this, listing] {
            list(listing->until, listing->prefix, std::move(listing->answer));
          });
          return;
        }
        if (!reply.ok()) {
          listing->answer(reply.error("list the locks"));
          return;
        }
        for (const auto& kv : reply.body.kvs()) {
          auto name = lock_of_key(context_.parts.root, kv.key());
          if (name && name->starts_with(listing->prefix)) listing->found.insert(*std::move(name));
        }
        if (reply.body.more() && reply.body.kvs_size() > 0) {
          // Take it from the first page: the header of a later page has the store's current
          // revision, not the revision of the page.
          if (listing->revision == 0) listing->revision = reply.body.header().revision();
          listing->next = reply.body.kvs(reply.body.kvs_size() - 1).key() + '\0';
          list_on(listing);
          return;
        }
        listing->answer(std::vector<std::string>(listing->found.begin(), listing->found.end()));
      }));
}

// ---- verify

void OperatorCalls::verify(Time until, Nonce nonce, Answer<bool> answer) {
  const auto ticket = tickets_.find(nonce);
  if (ticket == nullptr || !is_present(ticket->state())) {
    context_.loop.defer(
        context_.lifetime.guard([answer = std::move(answer)]() mutable { answer(false); }));
    return;
  }
  reader_.look_at_all(
      ticket, static_cast<std::int64_t>(ticket->token),
      [this, until, nonce, answer = std::move(answer)](Result<Standing> result) mutable {
        if (!result && transient(result.error()) && context_.loop.now() < until) {
          context_.retries.later([this, until, nonce, answer = std::move(answer)]() mutable {
            verify(until, nonce, std::move(answer));
          });
        } else if (!result) {
          answer(result.error());
        } else {
          answer(result->view.tickets.size() == 1 && result->view.omitted_ahead == 0);
        }
      });
}

}  // namespace baton::etcd
