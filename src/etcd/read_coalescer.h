// ReadCoalescer: looks of many waiters of one lock share one reading.
#pragma once

#include "common/base/loop.h"
#include "etcd/link.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace baton::etcd {

class ReadCoalescer {
 public:
  using Handler = UniqueFunction<void(Reply<etcdpb::RangeResponse>&)>;

  ReadCoalescer(Loop& loop, Link& link) : loop_(loop), link_(link) {}
  ~ReadCoalescer() { *alive_ = false; }
  ReadCoalescer(const ReadCoalescer&) = delete;
  ReadCoalescer& operator=(const ReadCoalescer&) = delete;

  // The keys of a lock, read by the cluster after this call. newest: nothing that was created later
  // is of interest, and the nearest before it will do (short_range); 0: all of them.
  void read(const std::string& prefix, std::int64_t newest, Handler handler);

 private:
  struct Reader {
    std::int64_t newest;
    Handler handler;
  };
  struct LockReads {    // one lock
    bool busy = false;  // a reading is under way; who comes now gets the next
    bool called = false;
    std::vector<Reader> waiting;
  };

  void serve(const std::string& prefix);
  void served(const std::string& prefix, std::vector<Reader>& readers,
              Reply<etcdpb::RangeResponse>& reply);

  Loop& loop_;
  Link& link_;
  std::map<std::string, LockReads> locks_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace baton::etcd
