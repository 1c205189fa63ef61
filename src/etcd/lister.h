// EtcdLister: looks of many waiters of one lock share one reading.
#pragma once

#include "common/base/loop.h"
#include "etcd/link.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace baton::internal {

class EtcdLister {
 public:
  using Handler = UniqueFunction<void(EtcdReply<etcdpb::RangeResponse>&)>;

  EtcdLister(Loop& loop, EtcdLink& link) : loop_(loop), link_(link) {}
  ~EtcdLister() { *alive_ = false; }
  EtcdLister(const EtcdLister&) = delete;
  EtcdLister& operator=(const EtcdLister&) = delete;

  // The keys of a lock, read by the cluster after this call. newest: nothing that was created later
  // is of interest, and the nearest before it will do (etcd_short_range); 0: all of them.
  void read(const std::string& prefix, std::int64_t newest, Handler handler);

 private:
  struct Customer {
    std::int64_t newest;
    Handler handler;
  };
  struct Desk {         // one lock
    bool busy = false;  // a reading is under way; who comes now gets the next
    bool called = false;
    std::vector<Customer> waiting;
  };

  void serve(const std::string& prefix);
  void served(const std::string& prefix, std::vector<Customer>& customers,
              EtcdReply<etcdpb::RangeResponse>& reply);

  Loop& loop_;
  EtcdLink& link_;
  std::map<std::string, Desk> desks_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace baton::internal
