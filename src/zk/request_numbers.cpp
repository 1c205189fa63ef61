#include "zk/request_numbers.h"

#include "common/base/fork_guard.h"

#include <ctime>
#include <mutex>

namespace baton::zk {

namespace {
struct XidMutex {
  std::mutex mutex;
};
}  // namespace

void skip_bad_request_numbers(zhandle_t* zh) {
  static RequestNumbers xids(std::time(nullptr));
  // Locked while the numbers are used up, so that no other request of baton gets one of them.
  const std::lock_guard guard(per_process<XidMutex>().mutex);
  std::uint32_t burn = xids.to_burn(std::time(nullptr));
  // The C client refuses an empty path, but only after it has assigned a number.
  for (; burn != 0; --burn) zoo_aget(zh, "", 0, nullptr, nullptr);
}

}  // namespace baton::zk
