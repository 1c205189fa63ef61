#include "zk/read_coalescer.h"

#include <algorithm>
#include <utility>

namespace baton::zk {

void ReadCoalescer::read(const std::string& directory, Freshness freshness, Answer answer) {
  const auto [reading, first] = under_way_.try_emplace(directory);
  if (!first) {
    reading->second.waiting.push_back(std::move(answer));
    reading->second.needed = std::max(reading->second.needed, freshness);
    return;
  }
  std::vector<Answer> answers;
  answers.push_back(std::move(answer));
  send(directory, std::move(answers), freshness);
}

void ReadCoalescer::send(const std::string& directory, std::vector<Answer> answers,
                         Freshness freshness) {
  // Answers come in order: the answer to the sync is known when the list is answered.
  auto before = std::make_shared<Reply>();
  before->status = Status::ok;
  if (freshness != Freshness::session) {
    before->status = Status::lost;
    outbox_.ask({Request::Kind::sync, directory, {}},
                [before](Reply& reply, std::uint64_t) { *before = std::move(reply); });
  }
  outbox_.ask(
      {Request::Kind::children, directory, {}},
      [this, directory, before, answers = std::move(answers)](Reply& reply, std::uint64_t) mutable {
        Listing listing;
        const bool fresh = before->status == Status::ok;
        listing.status = fresh ? reply.status : before->status;
        listing.code = fresh ? reply.code : before->code;
        if (listing.status == Status::ok) listing.queue = make_queue(reply.children);
        // Send the next read before calling the handlers: they may request more reads.
        auto reading = under_way_.find(directory);
        auto next = std::move(reading->second.waiting);
        const auto needed = std::exchange(reading->second.needed, Freshness::session);
        reading->second.waiting.clear();
        if (next.empty()) {
          under_way_.erase(reading);
        } else {
          send(directory, std::move(next), needed);
        }
        for (auto& answer : answers) answer(listing);
      });
}

}  // namespace baton::zk
