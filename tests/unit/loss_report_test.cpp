// Each hold that ends is reported by one metric, and a lost hold also by one line in the log. It
// does not matter whether the engine, the loss thread or the owner ends it first.
#include "scripted_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

namespace baton::internal {
namespace {

using Kind = MetricEvent::Kind;

class LossReport : public ScriptedEngine {
 protected:
  LossReport() { base_is(kBase); }

  std::shared_ptr<Hold> held() {
    const auto outcome = acquire();
    EXPECT_TRUE(outcome->hold);
    return outcome->hold;
  }
  void retire(const std::shared_ptr<Hold>& hold) {
    loop_.step([&] { engine_->retire_hold(hold, nullptr); });
  }
  auto count(Kind kind) const { return std::count(metrics_.begin(), metrics_.end(), kind); }
  auto lines() const {
    return std::count_if(log_.begin(), log_.end(), [](const std::string& line) {
      return line.find("with token 1001 is lost: ") != std::string::npos;
    });
  }
};

TEST_F(LossReport, LossThreadFirstAndTheEngineBeforeItHeardOfThat) {
  const auto hold = held();
  ASSERT_TRUE(hold->become_lost(Errc::session_expired));  // as the loss thread does at a deadline
  end_session();
  retire(hold);  // as the loss thread has posted
  EXPECT_EQ(count(Kind::lost), 1);
  EXPECT_EQ(lines(), 1);
  EXPECT_TRUE(announced_.empty()) << "the loss thread announces it";
}

TEST_F(LossReport, LossThreadAlone) {
  const auto hold = held();
  ASSERT_TRUE(hold->become_lost(Errc::session_expired));
  retire(hold);
  end_session();
  EXPECT_EQ(count(Kind::lost), 1);
  EXPECT_EQ(lines(), 1);
  EXPECT_EQ(script_.withdrawals, 1);
}

TEST_F(LossReport, EngineFirst) {
  const auto hold = held();
  end_session();
  EXPECT_FALSE(hold->become_lost(Errc::evicted));
  retire(hold);
  EXPECT_EQ(count(Kind::lost), 1);
  EXPECT_EQ(lines(), 1);
  EXPECT_EQ(announced_.size(), 1U);
}

TEST_F(LossReport, OwnerFirstAndTheEngineBeforeItHeardOfThat) {
  const auto hold = held();
  ASSERT_TRUE(hold->become_released());
  end_session();
  retire(hold);
  EXPECT_EQ(count(Kind::released), 1);
  EXPECT_EQ(count(Kind::lost), 0);
  EXPECT_EQ(lines(), 0);
  EXPECT_TRUE(announced_.empty());
}

TEST_F(LossReport, CloseIsALossWithoutALine) {
  const auto hold = held();
  loop_.step([&] { engine_->close([](const Result<Done>&) {}); });
  EXPECT_EQ(hold->lost_reason(), Errc::closed);
  EXPECT_EQ(count(Kind::lost), 1);
  EXPECT_EQ(lines(), 0);
  EXPECT_EQ(announced_.size(), 1U);
  EXPECT_EQ(script_.withdrawals, 0) << "the end of the session removes the ticket";
}

}  // namespace
}  // namespace baton::internal
