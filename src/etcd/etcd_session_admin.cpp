// What operators ask: inspect, list, evict. Answers that are lost are asked for again; the caller
// bounds the wait.
#include "etcd/etcd_path.h"
#include "etcd/etcd_queue.h"
#include "etcd/etcd_session.h"

#include <algorithm>
#include <utility>

namespace baton::internal {

namespace {

constexpr std::int64_t kPage = 5'000;

Entry make_entry(const std::string& prefix, const etcdpb::KeyValue& kv) {
  Entry entry;
  entry.id = etcd_entry_id(prefix, kv.key(), kv.create_revision());
  entry.token = static_cast<std::uint64_t>(kv.create_revision());
  if (auto value = etcd_decode_value(kv.value())) {
    entry.label = std::move(value->label);
    entry.since = value->since;
  } else {
    entry.label = "unknown";
  }
  return entry;
}

}  // namespace

void EtcdSession::inspect(const LockName& name, Answer<LockSnapshot> answer) {
  // Behind our own removals: what this client has given up is not shown to it.
  doors_.peek(prefix(name), [this, name, answer = std::move(answer)](bool) mutable {
    inspect_now(name, std::move(answer));
  });
}

void EtcdSession::inspect_now(const LockName& name, Answer<LockSnapshot> answer) {
  const std::string where = prefix(name);
  auto request = etcd_full_range(where);
  request.set_keys_only(false);
  link_.ask<etcdpb::RangeResponse>(
      EtcdCall::range, request, {},
      [this, alive = alive_, name, where,
       answer = std::move(answer)](EtcdReply<etcdpb::RangeResponse>& reply) mutable {
        if (!*alive) return;
        if (etcd_passes(reply.status)) {
          again([this, name, answer = std::move(answer)]() mutable {
            inspect(name, std::move(answer));
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
          if (etcd_direct(where, kv.key())) snapshot.entries.push_back(make_entry(where, kv));
        }
        std::sort(snapshot.entries.begin(), snapshot.entries.end(),
                  [](const Entry& a, const Entry& b) { return a.token < b.token; });
        answer(std::move(snapshot));
      });
}

// ---- evict

void EtcdSession::evict(const LockName& name, std::string_view entry_id, Answer<bool> answer) {
  const auto id = etcd_parse_entry_id(entry_id);
  // "There is none" is the store's to say, also of what cannot be an entry.
  const std::string key = prefix(name) + (id ? id->suffix : "");
  try_evict(key, id ? id->revision : 0, false, std::move(answer));
}

// created: 0 if any will do.
void EtcdSession::try_evict(const std::string& key, std::int64_t created, bool in_doubt,
                            Answer<bool> answer) {
  etcdpb::RangeRequest request;
  request.set_key(key);
  request.set_keys_only(true);
  const auto retry = [this, key](std::int64_t which, bool doubt, Answer<bool> to) {
    again([this, key, which, doubt, to = std::move(to)]() mutable {
      try_evict(key, which, doubt, std::move(to));
    });
  };
  link_.ask<etcdpb::RangeResponse>(
      EtcdCall::range, request, {},
      [this, alive = alive_, key, created, in_doubt, retry,
       answer = std::move(answer)](EtcdReply<etcdpb::RangeResponse>& found) mutable {
        if (!*alive) return;
        if (etcd_passes(found.status)) {
          retry(created, in_doubt, std::move(answer));
          return;
        }
        if (!found.ok()) {
          answer(found.error("read " + key));
          return;
        }
        const std::int64_t now =
            found.body.kvs_size() == 0 ? 0 : found.body.kvs(0).create_revision();
        if (now == 0 || (created != 0 && now != created)) {
          answer(in_doubt);  // gone; if an answer was lost, most likely by us
          return;
        }
        etcdpb::TxnRequest txn;
        auto& compare = *txn.add_compare();
        compare.set_key(key);
        compare.set_target(etcdpb::Compare::CREATE);
        compare.set_result(etcdpb::Compare::EQUAL);
        compare.set_create_revision(now);
        txn.add_success()->mutable_request_delete_range()->set_key(key);
        link_.ask<etcdpb::TxnResponse>(
            EtcdCall::txn, txn, {},
            [alive, key, now, in_doubt, retry,
             answer = std::move(answer)](EtcdReply<etcdpb::TxnResponse>& reply) mutable {
              if (!*alive) return;
              if (etcd_passes(reply.status)) {
                retry(now, in_doubt || reply.status == EtcdStatus::lost, std::move(answer));
              } else if (!reply.ok()) {
                answer(reply.error("remove " + key));
              } else {
                answer(reply.body.succeeded() || in_doubt);
              }
            });
      });
}

// ---- list, a page at a time, all at one revision

struct EtcdSession::Listing {
  std::string prefix;
  std::string next;  // where the next page begins
  std::string end;
  std::int64_t revision = 0;
  std::set<std::string> found;
  Answer<std::vector<std::string>> answer;
};

void EtcdSession::list(std::string_view wanted, Answer<std::vector<std::string>> answer) {
  auto listing = std::make_shared<Listing>();
  listing->prefix = wanted;
  const std::string below = (parts_.root.empty() ? "" : parts_.root + "/") + listing->prefix;
  listing->next = below.empty() ? std::string(1, '\0') : below;
  listing->end = etcd_range_end(below);
  listing->answer = std::move(answer);
  list_on(listing);
}

void EtcdSession::list_on(const std::shared_ptr<Listing>& listing) {
  etcdpb::RangeRequest request;
  request.set_key(listing->next);
  request.set_range_end(listing->end);
  request.set_keys_only(true);
  request.set_limit(kPage);
  request.set_revision(listing->revision);
  link_.ask<etcdpb::RangeResponse>(
      EtcdCall::range, request, {},
      [this, alive = alive_, listing](EtcdReply<etcdpb::RangeResponse>& reply) {
        if (!*alive) return;
        if (etcd_passes(reply.status) || reply.status == EtcdStatus::bad_revision) {
          // Compacted meanwhile, or nobody answered: from the beginning.
          again([this, listing] { list(listing->prefix, std::move(listing->answer)); });
          return;
        }
        if (!reply.ok()) {
          listing->answer(reply.error("list the locks"));
          return;
        }
        for (const auto& kv : reply.body.kvs()) {
          auto name = etcd_lock_of(parts_.root, kv.key());
          if (name && name->starts_with(listing->prefix)) listing->found.insert(*std::move(name));
        }
        if (reply.body.more() && reply.body.kvs_size() > 0) {
          listing->revision = reply.body.header().revision();
          listing->next = reply.body.kvs(reply.body.kvs_size() - 1).key() + '\0';
          list_on(listing);
          return;
        }
        listing->answer(std::vector<std::string>(listing->found.begin(), listing->found.end()));
      });
}

}  // namespace baton::internal
