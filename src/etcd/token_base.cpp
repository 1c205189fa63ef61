// Reads and writes the token base record: a key without a lease, directly below the root.
#include "common/seam/token_base.h"
#include "etcd/operator_calls.h"
#include "etcd/path.h"

#include <utility>

namespace baton::etcd {

void OperatorCalls::settle_token_base(Time until, std::uint64_t wanted,
                                      Answer<std::uint64_t> answer) {
  const std::string key = token_base_key(context_.parts.root);
  etcdpb::RangeRequest request;
  request.set_key(key);
  context_.link.ask<etcdpb::RangeResponse>(
      Call::range, request, {},
      context_.lifetime.guard([this, until, wanted, key, answer = std::move(answer)](
                                  Reply<etcdpb::RangeResponse>& reply) mutable {
        if (is_transient(reply.status) && context_.loop.now() < until) {
          context_.retries.later([this, until, wanted, answer = std::move(answer)]() mutable {
            settle_token_base(until, wanted, std::move(answer));
          });
        } else if (!reply.ok()) {
          answer(reply.error("read the token base " + key));
        } else if (reply.body.kvs_size() != 0) {
          answer(read_token_base(reply.body.kvs(0).value(), key));
        } else if (wanted == 0) {
          answer(std::uint64_t{0});
        } else {
          record_token_base(until, wanted, std::move(answer));
        }
      }));
}

void OperatorCalls::record_token_base(Time until, std::uint64_t wanted,
                                      Answer<std::uint64_t> answer) {
  list(
      until, "",
      [this, until, wanted,
       answer = std::move(answer)](const Result<std::vector<std::string>>& locks) mutable {
        if (!locks || !locks->empty()) {
          answer(locks ? token_base_in_use(wanted, locks->front()) : locks.error());
          return;
        }
        const std::string key = token_base_key(context_.parts.root);
        etcdpb::TxnRequest txn;
        auto& compare = *txn.add_compare();  // the first client to write the record wins
        compare.set_key(key);
        compare.set_target(etcdpb::Compare::CREATE);
        compare.set_result(etcdpb::Compare::EQUAL);
        compare.set_create_revision(0);
        auto& put = *txn.add_success()->mutable_request_put();
        put.set_key(key);
        put.set_value(encode_token_base(wanted));
        context_.link.ask<etcdpb::TxnResponse>(
            Call::txn, txn, {},
            context_.lifetime.guard([this, until, wanted, key, answer = std::move(answer)](
                                        Reply<etcdpb::TxnResponse>& reply) mutable {
              if (reply.ok()) {
                settle_token_base(until, wanted,
                                  std::move(answer));  // read the stored value
              } else if (is_transient(reply.status) && context_.loop.now() < until) {
                context_.retries.later([this, until, wanted, answer = std::move(answer)]() mutable {
                  settle_token_base(until, wanted, std::move(answer));
                });
              } else {
                answer(reply.error("record the token base " + key));
              }
            }));
      });
}

}  // namespace baton::etcd
