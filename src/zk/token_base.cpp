#include "zk/token_base.h"

#include "common/seam/token_base.h"
#include "zk/path.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::zk {

void TokenBase::settle(std::uint64_t wanted, Answer<std::uint64_t> answer) {
  const std::string node = lock_directory(context_.parts.root, kTokenBaseName);
  // Read after a sync: a server that lags may not show the record yet, and tokens would then be
  // issued without the base.
  const auto synced = std::make_shared<Reply>();
  context_.outbox.ask({Request::Kind::sync, node, {}},
                      [synced](Reply& reply, std::uint64_t) { *synced = std::move(reply); });
  context_.outbox.ask(
      {Request::Kind::get, node, {}}, [this, wanted, node, synced, answer = std::move(answer)](
                                          Reply& reply, std::uint64_t) mutable {
        const Reply& said = synced->status == Status::ok ? reply : *synced;
        switch (said.status) {
          case Status::ok:
            answer(read_token_base(said.data, node));
            return;
          case Status::no_node:
            if (wanted == 0) {
              answer(std::uint64_t{0});
            } else {
              record(wanted, std::move(answer));
            }
            return;
          case Status::lost:
            context_.retries.retry_later([this, wanted, answer = std::move(answer)]() mutable {
              settle(wanted, std::move(answer));
            });
            return;
          case Status::expired:
            return;  // the listener learns that the session has ended
          default:
            answer(call_error(said.status, said.code, "read the token base " + node));
        }
      });
}

void TokenBase::record(std::uint64_t wanted, Answer<std::uint64_t> answer) {
  locks_.list(
      "", kNever,
      [this, wanted,
       answer = std::move(answer)](const Result<std::vector<std::string>>& locks) mutable {
        if (!locks || !locks->empty()) {
          answer(locks ? token_base_in_use(wanted, locks->front()) : locks.error());
          return;
        }
        // The levels of the root are permanent, like the record. A level may already exist; only
        // the answer to the last request counts.
        const auto levels = ancestors_of(lock_directory(context_.parts.root, kTokenBaseName));
        const auto denied = std::make_shared<std::optional<Reply>>();
        for (std::size_t i = 0; i + 1 < levels.size(); ++i) {
          context_.outbox.ask({Request::Kind::create_permanent, levels[i], {}},
                              [denied](Reply& reply, std::uint64_t) {
                                if (reply.status == Status::no_auth) *denied = reply;
                              });
        }
        context_.outbox.ask(
            {Request::Kind::create_permanent, levels.back(), encode_token_base(wanted)},
            [this, wanted, denied, node = levels.back(), answer = std::move(answer)](
                Reply& reply, std::uint64_t) mutable {
              const bool missing = reply.status == Status::no_node && *denied;
              const Reply& said = missing ? **denied : reply;
              if (said.status == Status::ok || said.status == Status::node_exists) {
                settle(wanted, std::move(answer));  // read the stored value
              } else if (said.status == Status::lost || said.status == Status::no_node) {
                // no_node: the server has deleted an empty container above meanwhile, or the
                // connection broke between two requests.
                context_.retries.retry_later([this, wanted, answer = std::move(answer)]() mutable {
                  settle(wanted, std::move(answer));
                });
              } else if (said.status != Status::expired) {
                answer(call_error(said.status, said.code, "record the token base " + node));
              }
            });
      });
}

}  // namespace baton::zk
