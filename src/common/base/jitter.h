// Where the jitter of reconnects comes from: nobody knows, but in simulations, where a seed
// decides.
#pragma once

#include <cstdint>
#include <random>

namespace baton::internal {

#ifdef BATON_MUTANTS
extern std::uint32_t next_jitter_seed;  // set before a run
inline std::uint32_t jitter_seed() noexcept { return next_jitter_seed++; }
#else
inline std::uint32_t jitter_seed() { return std::random_device{}(); }
#endif

}  // namespace baton::internal
