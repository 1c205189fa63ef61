#include "etcd/read_coalescer.h"

#include "etcd/queue.h"

#include <utility>

namespace baton::etcd {

void ReadCoalescer::read(const std::string& prefix, std::int64_t newest, Handler handler) {
  LockReads& lock = locks_[prefix];
  lock.waiting.push_back({newest, std::move(handler)});
  if (lock.busy || std::exchange(lock.called, true)) return;
  // Deferred: all callers of this step share one read.
  loop_.defer([this, alive = alive_, prefix] {
    if (*alive) serve(prefix);
  });
}

void ReadCoalescer::serve(const std::string& prefix) {
  LockReads& lock = locks_[prefix];
  lock.called = false;
  lock.busy = true;
  auto readers = std::exchange(lock.waiting, {});
  const bool alone = readers.size() == 1 && readers.front().newest != 0;
  const auto request = alone ? short_range(prefix, readers.front().newest) : full_range(prefix);
  link_.ask<etcdpb::RangeResponse>(Call::range, request, {},
                                   [this, alive = alive_, prefix, readers = std::move(readers)](
                                       Reply<etcdpb::RangeResponse>& reply) mutable {
                                     if (*alive) served(prefix, readers, reply);
                                   });
}

void ReadCoalescer::served(const std::string& prefix, std::vector<Reader>& readers,
                           Reply<etcdpb::RangeResponse>& reply) {
  // Start the next read before calling the handlers: it must not depend on what they do.
  const auto lock = locks_.find(prefix);
  lock->second.busy = false;
  if (lock->second.waiting.empty()) {
    locks_.erase(lock);
  } else {
    serve(prefix);
  }
  const auto alive = alive_;
  for (auto& reader : readers) {
    reader.handler(reply);
    if (!*alive) return;
  }
}

}  // namespace baton::etcd
