#include "zk/lister.h"

#include <algorithm>
#include <utility>

namespace baton::internal {

void ZkLister::read(const std::string& directory, Freshness freshness, Answer answer) {
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

void ZkLister::send(const std::string& directory, std::vector<Answer> answers,
                    Freshness freshness) {
  // Answered in order: whatever is said to it is known when the list is answered.
  auto before = std::make_shared<ZkReply>();
  before->status = ZkStatus::ok;
  if (freshness != Freshness::session) {
    before->status = ZkStatus::lost;
    outbox_.ask({ZkRequest::Kind::sync, directory, {}},
                [before](ZkReply& reply, std::uint64_t) { *before = std::move(reply); });
  }
  outbox_.ask({ZkRequest::Kind::children, directory, {}},
              [this, directory, before, answers = std::move(answers)](ZkReply& reply,
                                                                      std::uint64_t) mutable {
                ZkListing listing;
                const bool fresh = before->status == ZkStatus::ok;
                listing.status = fresh ? reply.status : before->status;
                listing.code = fresh ? reply.code : before->code;
                if (listing.status == ZkStatus::ok) listing.queue = zk_queue(reply.children);
                // The next reading goes out first: answers may ask for more.
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

}  // namespace baton::internal
