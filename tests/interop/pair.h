// Two libraries use one lock, step by step. The steps are the same for every store.
#pragma once

#include "interop/contender.h"
#include "interop/fixture.h"

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>

namespace baton::interop {

struct Pair {
  Library one;
  Library other;
};

inline std::string text_of(const Pair& pair) {
  return std::string(name_of(pair.one)) + "And" + std::string(name_of(pair.other));
}
inline void PrintTo(const Pair& pair, std::ostream* out) { *out << text_of(pair); }

class PairTest : public InteropTest, public ::testing::WithParamInterface<Pair> {
 protected:
  using InteropTest::InteropTest;
  void SetUp() override;

  void the_holder_keeps_the_other_out();
  void release_wakes_the_other();
  void who_waits_first_is_served_first();
  // The waiter behind the one that leaves must look again, find the holder, and continue to wait.
  void a_waiter_that_leaves_makes_nobody_a_holder();
  void a_killed_holder_is_followed_when_its_session_ends();

 private:
  // Starts a contender again after it was killed.
  void start_again(std::unique_ptr<Contender>& contender);

  std::unique_ptr<Contender> onlooker_, one_, other_;
};

}  // namespace baton::interop
