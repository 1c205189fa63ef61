// The C client numbers the requests of a whole process with one 32-bit counter that begins at the
// time of day. After some 2.5 thousand million requests it comes by -8, -4, -2 and -1, which mean
// other things: an answer numbered -4 crashes the client.
#pragma once

#include "zk/namespace.h"

#include <zookeeper/zookeeper.h>

#include <cstdint>

namespace baton::zk {

// Which numbers to leave out. Pure.
class RequestNumbers {
 public:
  // start: the seconds of the first request, as far as we know.
  explicit RequestNumbers(std::int64_t start) noexcept : next_(static_cast<std::uint32_t>(start)) {}

  // Before every request: how many numbers to use up first. Others in this process may use the C
  // client too, so the berth is wide. now: in seconds; from -1 the counter goes on there.
  std::uint32_t to_burn(std::int64_t now) noexcept {
    const std::uint32_t left = 0U - next_;  // until the counter comes to 0
    if (left != 0 && left <= kBerth) {
      next_ = static_cast<std::uint32_t>(now) + kBerth;
      return left + kBerth;
    }
    ++next_;
    return 0;
  }

  static constexpr std::uint32_t kBerth = 1U << 20;

 private:
  std::uint32_t next_;
};

// Before every request of this process: uses up the numbers that are not safe to use.
void skip_bad_request_numbers(zhandle_t* zh);

}  // namespace baton::zk
