// What the tests of ZooKeeper's peers share: a server, contenders, and a view of their queue.
#pragma once

#include "interop/contender.h"
#include "support/eventually.h"
#include "support/zk_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace baton::interop {

using namespace std::chrono_literals;

inline constexpr auto kSession = 2000ms;
inline constexpr auto kTick = 500ms;  // so that such a session is possible; the longest is 10 s

inline test::ZkOptions short_ticks() {
  test::ZkOptions options;
  options.tick = kTick;
  return options;
}

// One server for all tests of this process, or the one that the environment names.
inline const std::string& shared_server() {
  static const auto given = test::zk_from_environment();
  static const auto own = given ? nullptr : std::make_unique<test::ZkEnsemble>(short_ticks());
  static const std::string hosts = given ? *given : own->hosts();
  return hosts;
}

class ZkInteropTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Never skipped: a suite that is skipped proves nothing.
    if (!missing_peers().empty()) GTEST_FAIL() << missing_peers();
    static int serial = 0;
    place_.hosts = server();
    place_.root = "/interop-" + std::to_string(monotonic_now());
    place_.name = "job-" + std::to_string(++serial);
    place_.session = kSession;
  }

  // The server to use.
  virtual std::string server() { return shared_server(); }

  // Connected, and on our clock. Throws: without it, every later step would wait for nothing.
  std::unique_ptr<Contender> start(Library library, const std::string& who) {
    const auto before = monotonic_now();
    auto contender = std::make_unique<Contender>(library, who, place_);
    const auto words = contender->answer();
    if (words.empty() || words[0] != "READY") throw std::runtime_error(who + " did not start");
    EXPECT_LE(before, contender->stamp()) << who << " has another clock";
    EXPECT_LE(contender->stamp(), monotonic_now()) << who << " has another clock";
    return contender;
  }

  // The tokens of the queue in its order, as an onlooker sees it.
  static std::vector<std::uint64_t> queue(Contender& onlooker) {
    EXPECT_EQ(onlooker.ask("entries"), "ENTRIES");
    std::vector<std::uint64_t> tokens;
    for (std::size_t i = 2; i < onlooker.words().size(); ++i) {
      const auto& word = onlooker.words()[i];
      tokens.push_back(std::stoull(word.substr(word.rfind(':') + 1)));
    }
    return tokens;
  }

  // Begins to wait, and returns when its entry is in the queue behind `others` others.
  static void wait_behind(std::size_t others, Contender& contender, Contender& onlooker,
                          const std::string& how = "wait") {
    contender.say(how);
    EXPECT_TRUE(test::eventually(contender.who() + " joins the queue",
                                 [&] { return queue(onlooker).size() == others + 1; }));
    EXPECT_TRUE(contender.silent()) << contender.who() << " must wait";
  }

  static void expect_granted(Contender& contender) {
    const auto words = contender.answer();
    ASSERT_FALSE(words.empty()) << contender.who() << " was not granted";
    EXPECT_EQ(words[0], "GRANTED") << contender.who();
  }

  Place place_;
};

constexpr auto of_param = [](const auto& info) { return text_of(info.param); };

}  // namespace baton::interop
