#include "zk/zk_xid.h"

#include <ctime>
#include <mutex>

namespace baton::internal {

void zk_skip_bad_xids(zhandle_t* zh) {
  static std::mutex mutex;
  static ZkXids xids(std::time(nullptr));
  std::uint32_t burn = 0;
  {
    const std::lock_guard guard(mutex);
    burn = xids.to_burn();
  }
  // No path: refused, after it has taken a number.
  for (; burn != 0; --burn) zoo_aget(zh, "", 0, nullptr, nullptr);
}

}  // namespace baton::internal
