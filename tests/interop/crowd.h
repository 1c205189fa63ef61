// Many contenders of several libraries, many turns each, on one lock; and the same without the
// lock, to see that the checks bite.
#pragma once

#include "history/holds.h"
#include "interop/contender.h"
#include "interop/fixture.h"
#include "support/temp_dir.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace baton::interop {

struct Crowd {
  std::map<Library, int> members;
  int turns;  // of each; BATON_TURNS in the environment says otherwise
};

std::string text_of(const Crowd& crowd);
inline void PrintTo(const Crowd& crowd, std::ostream* out) { *out << text_of(crowd); }

class CrowdTest : public InteropTest, public ::testing::WithParamInterface<Crowd> {
 protected:
  using InteropTest::InteropTest;
  void SetUp() override;

  void takes_turns_in_the_order_of_arrival();
  // The control: if the same run without the lock passes, the checks see nothing.
  void without_the_lock_the_checks_bite();

 private:
  // All begin together, when everybody is connected.
  void run(int turns, const std::string& how);
  history::Holds holds() const;  // also printed
  long counted() const;
  long asked_for(int turns) const { return static_cast<long>(team_.size()) * turns; }
  std::vector<std::string> names() const;

  test::TempDir directory_;
  const std::string counter_ = directory_ / "counter";
  const std::string history_ = directory_ / "history";
  std::vector<std::unique_ptr<Contender>> team_;
};

}  // namespace baton::interop
