// RequestNumbers: skips request numbers that crash the C client. The C client numbers all requests
// of a process with one 32-bit counter that starts at the current time in seconds. After about 2.5
// billion requests the counter reaches -8, -4, -2 and -1, which have a special meaning: an answer
// with number -4 crashes the client.
#pragma once

#include "zk/namespace.h"

#include <zookeeper/zookeeper.h>

#include <cstdint>

namespace baton::zk {

// Computes how many numbers to skip. Pure.
class RequestNumbers {
 public:
  // start: the time in seconds of the first request, as far as known.
  explicit RequestNumbers(std::int64_t start) noexcept : next_(static_cast<std::uint32_t>(start)) {}

  // Call it before every request: returns how many numbers to use up first. The margin is wide
  // because other code in this process may use the C client as well. now: the time in seconds;
  // after -1 the counter continues from it.
  std::uint32_t to_burn(std::int64_t now) noexcept {
    const std::uint32_t left = 0U - next_;  // until the counter reaches 0
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

// Call it before every request of this process. Uses up the numbers that are not safe.
void skip_bad_request_numbers(zhandle_t* zh);

}  // namespace baton::zk
