// Checks how contenders shared a lock while each of them acquired it again and again.
#pragma once

#include "history/holds.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace baton::history {

// Each contender held the lock for its turns 1 to `turns` in this order, and there was no other
// contender.
::testing::AssertionResult complete(const Holds& holds, const std::vector<std::string>& who,
                                    std::uint64_t turns);
// No contender starves; shares.cpp explains the bound.
::testing::AssertionResult evenly_shared(const Holds& holds);
std::string summary(const Holds& holds);

}  // namespace baton::history
