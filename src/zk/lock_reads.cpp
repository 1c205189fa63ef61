#include "zk/lock_reads.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace baton::zk {

namespace {

void read_directory(Outbox& outbox, const std::string& directory, Freshness freshness,
                    LockReads::Handler answered) {
  // Answers come in order: the answer to the sync is known when the list is answered.
  auto before = std::make_shared<Reply>();
  before->status = Status::ok;
  if (freshness != Freshness::session) {
    before->status = Status::lost;
    outbox.ask({Request::Kind::sync, directory, {}},
               [before](Reply& reply, std::uint64_t) { *before = std::move(reply); });
  }
  outbox.ask({Request::Kind::children, directory, {}},
             [before, answered = std::move(answered)](Reply& reply, std::uint64_t) mutable {
               Listing listing;
               const bool fresh = before->status == Status::ok;
               listing.status = fresh ? reply.status : before->status;
               listing.code = fresh ? reply.code : before->code;
               if (listing.status == Status::ok) listing.queue = make_queue(reply.children);
               answered(listing);
             });
}

}  // namespace

LockReads make_lock_reads(Loop& loop, Outbox& outbox) {
  const auto merge = [](Freshness one, Freshness other) { return std::max(one, other); };
  return {
      loop, LockReads::Start::at_once, merge,
      [&outbox](const std::string& directory, Freshness freshness, LockReads::Handler answered) {
        read_directory(outbox, directory, freshness, std::move(answered));
      }};
}

}  // namespace baton::zk
