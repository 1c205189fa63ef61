// ReadCoalescer: lets the looks of many waiters of one lock share one read.
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

  // Reads the keys of a lock; the cluster executes the read after this call. newest: the caller
  // needs no key that was created later, and the nearest keys before it are enough (short_range);
  // 0: the caller needs all keys. The handler may receive more keys than requested.
  void read(const std::string& prefix, std::int64_t newest, Handler handler);

 private:
  struct Reader {
    std::int64_t newest;
    Handler handler;
  };
  struct LockReads {    // one lock
    bool busy = false;  // a read is under way; new callers share the next one
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
