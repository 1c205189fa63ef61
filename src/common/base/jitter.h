// Seeds for the jitter of reconnects: random, except in builds for the simulator, which sets the
// seeds so that a run can be repeated.
#pragma once

#include <cstdint>
#include <random>

namespace baton::internal {

#ifdef BATON_MUTANTS
extern std::uint32_t next_jitter_seed;  // set by the test before a run
inline std::uint32_t jitter_seed() noexcept { return next_jitter_seed++; }
#else
inline std::uint32_t jitter_seed() { return std::random_device{}(); }
#endif

}  // namespace baton::internal
