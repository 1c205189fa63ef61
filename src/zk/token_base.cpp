// The record of the token base: a permanent node below the root.
#include "common/seam/token_base.h"
#include "zk/path.h"
#include "zk/session.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::internal {

void ZkSession::settle_token_base(std::uint64_t wanted, Answer<std::uint64_t> answer) {
  const std::string node = zk_directory(parts_.root, kTokenBaseName);
  // Behind a sync: a server that lags would show no record, and tokens would lack the base.
  const auto synced = std::make_shared<ZkReply>();
  outbox_.ask({ZkRequest::Kind::sync, node, {}},
              [synced](ZkReply& reply, std::uint64_t) { *synced = std::move(reply); });
  outbox_.ask({ZkRequest::Kind::get, node, {}},
              [this, wanted, node, synced, answer = std::move(answer)](ZkReply& reply,
                                                                       std::uint64_t) mutable {
                const ZkReply& said = synced->status == ZkStatus::ok ? reply : *synced;
                switch (said.status) {
                  case ZkStatus::ok:
                    answer(read_token_base(said.data, node));
                    return;
                  case ZkStatus::no_node:
                    if (wanted == 0) {
                      answer(std::uint64_t{0});
                    } else {
                      record_token_base(wanted, std::move(answer));
                    }
                    return;
                  case ZkStatus::lost:
                    again([this, wanted, answer = std::move(answer)]() mutable {
                      settle_token_base(wanted, std::move(answer));
                    });
                    return;
                  case ZkStatus::expired:
                    return;  // the end of the session is told to the listener
                  default:
                    answer(zk_error(said.status, said.code, "read the token base " + node));
                }
              });
}

void ZkSession::record_token_base(std::uint64_t wanted, Answer<std::uint64_t> answer) {
  list("", [this, wanted,
            answer = std::move(answer)](const Result<std::vector<std::string>>& locks) mutable {
    if (!locks || !locks->empty()) {
      answer(locks ? token_base_in_use(wanted, locks->front()) : locks.error());
      return;
    }
    // The root's levels stay, as the record does. That a level is there already is fine; only what
    // the last request says counts.
    const auto levels = zk_ancestors(zk_directory(parts_.root, kTokenBaseName));
    const auto denied = std::make_shared<std::optional<ZkReply>>();
    for (std::size_t i = 0; i + 1 < levels.size(); ++i) {
      outbox_.ask({ZkRequest::Kind::create_permanent, levels[i], {}},
                  [denied](ZkReply& reply, std::uint64_t) {
                    if (reply.status == ZkStatus::no_auth) *denied = reply;
                  });
    }
    outbox_.ask({ZkRequest::Kind::create_permanent, levels.back(), encode_token_base(wanted)},
                [this, wanted, denied, node = levels.back(), answer = std::move(answer)](
                    ZkReply& reply, std::uint64_t) mutable {
                  const bool missing = reply.status == ZkStatus::no_node && *denied;
                  const ZkReply& said = missing ? **denied : reply;
                  if (said.status == ZkStatus::ok || said.status == ZkStatus::node_exists) {
                    settle_token_base(wanted, std::move(answer));  // the store says whose it is
                  } else if (said.status == ZkStatus::lost || said.status == ZkStatus::no_node) {
                    // no_node: an empty container above went meanwhile, or a cut came in between.
                    again([this, wanted, answer = std::move(answer)]() mutable {
                      settle_token_base(wanted, std::move(answer));
                    });
                  } else if (said.status != ZkStatus::expired) {
                    answer(zk_error(said.status, said.code, "record the token base " + node));
                  }
                });
  });
}

}  // namespace baton::internal
