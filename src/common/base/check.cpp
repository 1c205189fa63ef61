#include "common/base/check.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace baton::internal {

namespace {

void end_program(const BrokenInvariant& broken) {
  std::fprintf(stderr, "baton: broken invariant at %s:%d: %s\n", broken.file, broken.line,
               broken.condition);
  std::abort();
}

std::atomic<CheckHandler> check_handler{end_program};

}  // namespace

CheckHandler set_check_handler(CheckHandler handler) noexcept {
  return check_handler.exchange(handler);
}

void invariant_broken(const BrokenInvariant& broken) { check_handler.load()(broken); }

}  // namespace baton::internal
