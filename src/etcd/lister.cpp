#include "etcd/lister.h"

#include "etcd/queue.h"

#include <utility>

namespace baton::internal {

void EtcdLister::read(const std::string& prefix, std::int64_t newest, Handler handler) {
  Desk& desk = desks_[prefix];
  desk.waiting.push_back({newest, std::move(handler)});
  if (desk.busy || std::exchange(desk.called, true)) return;
  // Those of the same step come together.
  loop_.defer([this, alive = alive_, prefix] {
    if (*alive) serve(prefix);
  });
}

void EtcdLister::serve(const std::string& prefix) {
  Desk& desk = desks_[prefix];
  desk.called = false;
  desk.busy = true;
  auto customers = std::exchange(desk.waiting, {});
  const bool alone = customers.size() == 1 && customers.front().newest != 0;
  const auto request =
      alone ? etcd_short_range(prefix, customers.front().newest) : etcd_full_range(prefix);
  link_.ask<etcdpb::RangeResponse>(EtcdCall::range, request, {},
                                   [this, alive = alive_, prefix, customers = std::move(customers)](
                                       EtcdReply<etcdpb::RangeResponse>& reply) mutable {
                                     if (*alive) served(prefix, customers, reply);
                                   });
}

void EtcdLister::served(const std::string& prefix, std::vector<Customer>& customers,
                        EtcdReply<etcdpb::RangeResponse>& reply) {
  // The next reading first: it must not depend on what the handlers of this one do.
  const auto desk = desks_.find(prefix);
  desk->second.busy = false;
  if (desk->second.waiting.empty()) {
    desks_.erase(desk);
  } else {
    serve(prefix);
  }
  const auto alive = alive_;
  for (auto& customer : customers) {
    customer.handler(reply);
    if (!*alive) return;
  }
}

}  // namespace baton::internal
