#include "zk/outbox.h"

#include <algorithm>
#include <utility>

namespace baton::zk {

Outbox::Outbox() = default;
Outbox::~Outbox() { lifetime_.end(); }

std::uint64_t Outbox::ask(Request request, Answer answer, Wanted wanted) {
  const std::uint64_t id = next_++;
  waiting_.push_back({id, std::move(request), std::move(answer), std::move(wanted)});
  flush();
  return id;
}

bool Outbox::recall(std::uint64_t id) {
  const auto found = std::lower_bound(waiting_.begin(), waiting_.end(), id,
                                      [](const Waiting& w, std::uint64_t v) { return w.id < v; });
  if (found == waiting_.end() || found->id != id) return false;
  waiting_.erase(found);
  return true;
}

void Outbox::connected() {
  open_ = true;
  ++connection_;
  flush();
}

void Outbox::flush() {
  while (open_ && under_way_ < kUnderWay && !waiting_.empty()) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    if (next.wanted && !next.wanted()) continue;
    ++under_way_;
    transport_->send(next.request, [this, alive = lifetime_.watch(), connection = connection_,
                                    answer = std::move(next.answer)](Reply& reply) mutable {
      if (!alive) return;
      --under_way_;
      answer(reply, connection);
      if (alive) flush();  // the answer may have destroyed this
    });
  }
}

}  // namespace baton::zk
