// The seeded bugs in the order of a ZooKeeper queue.
#include "bugs.h"
#include "forwarding_session.h"
#include "seeded_session.h"
#include "sim_zk.h"
#include "zk/path.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace baton::sim {

namespace {

using internal::Answer;
using internal::LockName;
using internal::LookHint;
using internal::Nonce;
using internal::Standing;
using SessionPtr = std::unique_ptr<internal::Session>;

class Herd final : public ForwardingSession {
 public:
  using ForwardingSession::ForwardingSession;
  void join(const LockName& name, Nonce nonce, Answer<Standing> answer) override {
    inner().join(name, nonce, behind_head(name, std::move(answer)));
  }
  void look(const LockName& name, Nonce nonce, const LookHint& hint,
            Answer<Standing> answer) override {
    inner().look(name, nonce, hint, behind_head(name, std::move(answer)));
  }

 private:
  // Puts the head of the queue in the place of the predecessor.
  Answer<Standing> behind_head(const LockName& name, Answer<Standing> answer) {
    return [this, name, answer = std::move(answer)](Result<Standing> standing) mutable {
      if (!standing || standing->view.tickets.size() < 2) {
        answer(std::move(standing));
        return;
      }
      inner().inspect(name, [standing = std::move(standing), answer = std::move(answer)](
                                const Result<LockSnapshot>& queue) mutable {
        auto& tickets = standing->view.tickets;
        if (queue && !queue->entries.empty() && queue->entries.front().id != tickets.back().id) {
          tickets.front().id = queue->entries.front().id;
        }
        answer(std::move(standing));
      });
    };
  }
};

// If a queue has used its last sequence number, the names of the entries decide their order.
class TiesByName final : public ForwardingSession {
 public:
  TiesByName(SessionPtr inner, int client)
      : ForwardingSession(std::move(inner)), client_(zk_client_id(client)) {}
  void join(const LockName& name, Nonce nonce, Answer<Standing> answer) override {
    inner().join(name, nonce, going_on(name, nonce, std::move(answer)));
  }
  void look(const LockName& name, Nonce nonce, const LookHint& hint,
            Answer<Standing> answer) override {
    inner().look(name, nonce, hint, going_on(name, nonce, std::move(answer)));
  }

 private:
  Answer<Standing> going_on(const LockName& name, Nonce nonce, Answer<Standing> answer) {
    return [this, name, nonce, answer = std::move(answer)](Result<Standing> standing) mutable {
      if (standing || standing.error().errc() != Errc::store_error) {
        answer(std::move(standing));
        return;
      }
      inner().inspect(name, [this, nonce, answer = std::move(answer)](
                                const Result<LockSnapshot>& queue) mutable {
        if (!queue) {
          answer(queue.error());
          return;
        }
        const auto own = zk::entry_prefix(zk::format_entry_id(client_, nonce));
        const auto& entries = queue->entries;
        const auto mine = std::find_if(entries.begin(), entries.end(),
                                       [&own](const Entry& e) { return e.id.starts_with(own); });
        Standing result;
        if (mine != entries.end()) {
          const auto ahead = static_cast<std::size_t>(mine - entries.begin());
          result.token = mine->token;
          result.view.omitted_ahead = ahead == 0 ? 0 : ahead - 1;
          if (ahead != 0) result.view.tickets.push_back({ahead, (mine - 1)->id, std::nullopt});
          result.view.tickets.push_back({ahead + 1, mine->id, nonce});
        }
        answer(std::move(result));
      });
    };
  }

  const std::string client_;
};

}  // namespace

SessionPtr with_seeded_zk_bug(SessionPtr session, const SeededNotes& notes) {
  if (seeded(Bug::herd)) return std::make_unique<Herd>(std::move(session));
  if (seeded(Bug::ties_by_name)) {
    return std::make_unique<TiesByName>(std::move(session), notes.client);
  }
  return session;
}

}  // namespace baton::sim
