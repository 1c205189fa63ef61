// Many contenders of several libraries take many turns on one lock. The same run without the lock
// shows that the checks find errors.
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
  int turns;  // of each contender, unless BATON_TURNS in the environment is set
};

std::string text_of(const Crowd& crowd);
inline void PrintTo(const Crowd& crowd, std::ostream* out) { *out << text_of(crowd); }

class CrowdTest : public InteropTest, public ::testing::WithParamInterface<Crowd> {
 protected:
  using InteropTest::InteropTest;
  void SetUp() override;

  void takes_turns_in_the_order_of_arrival();
  // The control run, without the lock: the checks must find errors in it.
  void without_the_lock_the_checks_bite();

 private:
  // Lets all contenders take their turns at the same time, after all are connected.
  void run(int turns, const std::string& how);
  history::Holds holds() const;  // read from the file; prints a summary
  long counted() const;
  long asked_for(int turns) const { return static_cast<long>(team_.size()) * turns; }
  std::vector<std::string> names() const;

  test::TempDir directory_;
  const std::string counter_ = directory_ / "counter";
  const std::string history_ = directory_ / "history";
  std::vector<std::unique_ptr<Contender>> team_;
};

}  // namespace baton::interop
