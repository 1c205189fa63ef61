#include "zk/request_numbers.h"

#include "common/base/fork_guard.h"
#include "common/base/mutex.h"

#include <ctime>

namespace baton::zk {

namespace {
struct XidMutex {
  Mutex mutex;
};
}  // namespace

void skip_bad_request_numbers(zhandle_t* zh) {
  static RequestNumbers xids(std::time(nullptr));
  // Locked while the numbers are used up, so that no other request of baton gets one of them.
  const MutexLock guard(per_process<XidMutex>().mutex);
  std::uint32_t burn = xids.to_burn(std::time(nullptr));
  // The C client refuses an empty path, but only after it has assigned a number.
  for (; burn != 0; --burn) zoo_aget(zh, "", 0, nullptr, nullptr);
}

}  // namespace baton::zk
