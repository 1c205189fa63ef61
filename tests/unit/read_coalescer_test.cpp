// ReadCoalescer: callers that read the same thing at the same time share one read.
#include "common/seam/read_coalescer.h"
#include "manual_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace baton::internal {
namespace {

using Reads = ReadCoalescer<int, std::string>;
using Texts = std::vector<std::string>;

class ReadCoalescerTest : public testing::Test {
 protected:
  struct Sent {
    std::string what;
    int need;
    Reads::Handler answered;
  };

  std::unique_ptr<Reads> make(Reads::Start start) {
    return std::make_unique<Reads>(
        loop, start, [](int one, int other) { return std::max(one, other); },
        [this](const std::string& what, int need, Reads::Handler answered) {
          sent.push_back({what, need, std::move(answered)});
        });
  }
  // A caller that records its answer.
  Reads::Handler caller(const std::string& name) {
    return [this, name](std::string& reading) { heard.push_back(name + ":" + reading); };
  }
  void answer(std::size_t number, std::string reading) { sent.at(number).answered(reading); }

  ManualLoop loop;
  std::vector<Sent> sent;
  Texts heard;
};

TEST_F(ReadCoalescerTest, AtOnceSendsTheFirstReadInsideTheCall) {
  const auto reads = make(Reads::Start::at_once);
  reads->read("a", 1, caller("x"));
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].what, "a");
  answer(0, "1");
  EXPECT_EQ(heard, Texts{"x:1"});
}

TEST_F(ReadCoalescerTest, CallersOfOneStepShareAReadThatServesAllOfThem) {
  const auto reads = make(Reads::Start::end_of_step);
  loop.step([&] {
    reads->read("a", 1, caller("x"));
    reads->read("a", 3, caller("y"));
    reads->read("a", 2, caller("z"));
    EXPECT_TRUE(sent.empty());
  });
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].need, 3);
  answer(0, "1");
  EXPECT_EQ(heard, (Texts{"x:1", "y:1", "z:1"}));
}

// A read that is under way may have been executed before the new caller's call.
TEST_F(ReadCoalescerTest, ACallerDuringAReadGetsTheNextOne) {
  for (const auto start : {Reads::Start::at_once, Reads::Start::end_of_step}) {
    sent.clear();
    heard.clear();
    const auto reads = make(start);
    loop.step([&] { reads->read("a", 5, caller("x")); });
    loop.step([&] {
      reads->read("a", 1, caller("y"));
      reads->read("a", 2, caller("z"));
    });
    ASSERT_EQ(sent.size(), 1U);
    answer(0, "old");
    EXPECT_EQ(heard, Texts{"x:old"});
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_EQ(sent[1].need, 2) << "what the first read was asked for does not count any more";
    answer(1, "new");
    EXPECT_EQ(heard, (Texts{"x:old", "y:new", "z:new"}));
  }
}

TEST_F(ReadCoalescerTest, ReadsOfOtherThingsDoNotWait) {
  const auto reads = make(Reads::Start::at_once);
  reads->read("a", 1, caller("x"));
  reads->read("b", 1, caller("y"));
  ASSERT_EQ(sent.size(), 2U);
  answer(1, "b");
  answer(0, "a");
  EXPECT_EQ(heard, (Texts{"y:b", "x:a"}));
}

TEST_F(ReadCoalescerTest, AHandlerMayReadAgain) {
  const auto reads = make(Reads::Start::at_once);
  reads->read("a", 1, [&](std::string&) { reads->read("a", 1, caller("again")); });
  answer(0, "1");
  ASSERT_EQ(sent.size(), 2U);
  answer(1, "2");
  EXPECT_EQ(heard, Texts{"again:2"});
}

TEST_F(ReadCoalescerTest, AHandlerMayDestroyIt) {
  auto reads = make(Reads::Start::at_once);
  reads->read("a", 1, caller("first"));
  reads->read("a", 1, [&](std::string&) { reads.reset(); });
  reads->read("a", 1, caller("never"));
  answer(0, "1");
  answer(1, "2");
  EXPECT_EQ(heard, Texts{"first:1"});
}

TEST_F(ReadCoalescerTest, NothingHappensAfterItsEnd) {
  auto reads = make(Reads::Start::end_of_step);
  loop.step([&] { reads->read("a", 1, caller("x")); });
  loop.step([&] {
    reads->read("b", 1, caller("y"));
    reads.reset();
  });
  ASSERT_EQ(sent.size(), 1U) << "a read was sent after the end";
  answer(0, "1");
  EXPECT_TRUE(heard.empty());
}

}  // namespace
}  // namespace baton::internal
