// Runs the suites of one store. A case fails if it is skipped although the table of rig.cpp does
// not allow it.
#include "conformance/fixture.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace baton::conformance {
namespace {

std::set<std::string> noted_cases;

std::string full_name(const ::testing::TestInfo& test) {
  return std::string(test.test_suite_name()) + "." + test.name();
}

class SkipAudit : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo& test) override {
    const bool declared = noted_cases.count(full_name(test)) != 0;
    if (test.result()->Skipped() && !declared) {
      ADD_FAILURE() << full_name(test) << " skipped without a row in the table of rig.cpp";
    }
  }
};

}  // namespace

void note_skip(std::string_view, Can) {
  noted_cases.insert(full_name(*::testing::UnitTest::GetInstance()->current_test_info()));
}

}  // namespace baton::conformance

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::UnitTest::GetInstance()->listeners().Append(new baton::conformance::SkipAudit);
  return RUN_ALL_TESTS();
}
