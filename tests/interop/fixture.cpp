#include "interop/fixture.h"

#include "support/eventually.h"

#include <stdexcept>

namespace baton::interop {

void InteropTest::SetUp() {
  // Fails instead of skipping, because a skipped suite proves nothing.
  const auto missing = missing_peers(setting_.store);
  if (!missing.empty()) GTEST_FAIL() << missing;
  static int serial = 0;
  place_.store = setting_.store;
  place_.hosts = server();
  place_.root = "/interop-" + std::to_string(monotonic_now());
  place_.name = "job-" + std::to_string(++serial);
  place_.session = kSession;
}

std::unique_ptr<Contender> InteropTest::start(Library library, const std::string& who) const {
  const auto before = monotonic_now();
  auto contender = std::make_unique<Contender>(library, who, place_);
  const auto words = contender->answer();
  if (words.empty() || words[0] != "READY") throw std::runtime_error(who + " did not start");
  EXPECT_LE(before, contender->stamp()) << who << " has another clock";
  EXPECT_LE(contender->stamp(), monotonic_now()) << who << " has another clock";
  return contender;
}

std::vector<std::uint64_t> InteropTest::queue(Contender& onlooker) {
  EXPECT_EQ(onlooker.ask("entries"), "ENTRIES");
  std::vector<std::uint64_t> tokens;
  for (std::size_t i = 2; i < onlooker.words().size(); ++i) {
    const auto& word = onlooker.words()[i];
    tokens.push_back(std::stoull(word.substr(word.rfind(':') + 1)));
  }
  return tokens;
}

void InteropTest::wait_behind(std::size_t others, Contender& contender, Contender& onlooker,
                              const std::string& how) {
  contender.say(how);
  EXPECT_TRUE(test::eventually(contender.who() + " joins the queue",
                               [&] { return queue(onlooker).size() == others + 1; }));
  EXPECT_TRUE(contender.silent()) << contender.who() << " must wait";
}

void InteropTest::expect_granted(Contender& contender) {
  const auto words = contender.answer();
  ASSERT_FALSE(words.empty()) << contender.who() << " was not granted";
  EXPECT_EQ(words[0], "GRANTED") << contender.who();
}

void InteropTest::keeps_out(Contender& holder, Contender& other) {
  const std::string who = holder.who() + " holds, " + other.who() + " asks";
  ASSERT_EQ(holder.ask("try"), "GRANTED") << who;
  const auto token = holder.token();
  EXPECT_EQ(other.ask("try"), "REFUSED") << who;
  const auto before = monotonic_now();
  EXPECT_EQ(other.ask("acquire 300"), "REFUSED") << who;
  EXPECT_GE(other.stamp() - before, std::chrono::nanoseconds(300ms).count()) << who;
  EXPECT_EQ(holder.ask("release"), "RELEASED") << who;
  ASSERT_EQ(other.ask("acquire 10000"), "GRANTED") << who;
  EXPECT_GT(other.token(), token) << who;
  EXPECT_EQ(other.ask("release"), "RELEASED") << who;
}

}  // namespace baton::interop
