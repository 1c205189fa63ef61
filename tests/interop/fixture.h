// The common part of the interop tests: a server, contenders, and a contender that reads the queue.
#pragma once

#include "interop/contender.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace baton::interop {

using namespace std::chrono_literals;

inline constexpr auto kSession = 2000ms;

// The settings of one store.
struct Setting {
  Store store;
  // The server for all tests of this process.
  const std::string& (*server)();
  // The library of the contender that reads the queue.
  Library onlooker;
  // A session may end this much later than its timeout.
  std::chrono::milliseconds late;
};

class InteropTest : public ::testing::Test {
 protected:
  explicit InteropTest(const Setting& setting) : setting_(setting) {}
  void SetUp() override;

  // The hosts of the server to use.
  virtual std::string server() { return setting_.server(); }

  // Starts a contender, waits until it is connected, and checks that its clock is ours. Throws if
  // it does not start, because every later step would wait until its time limit.
  std::unique_ptr<Contender> start(Library library, const std::string& who) const;
  std::unique_ptr<Contender> start_onlooker() const { return start(setting_.onlooker, "onlooker"); }

  // The tokens of the queue in order, as the onlooker reads them.
  static std::vector<std::uint64_t> queue(Contender& onlooker);
  // Makes the contender wait for the lock. Returns when its entry is in the queue behind `others`
  // other entries.
  static void wait_behind(std::size_t others, Contender& contender, Contender& onlooker,
                          const std::string& how = "wait");
  static void expect_granted(Contender& contender);
  // Checks that the other contender is refused while the holder has the lock, and is granted it
  // after the release.
  static void keeps_out(Contender& holder, Contender& other);

  const Setting& setting_;
  Place place_;
};

constexpr auto of_param = [](const auto& info) { return text_of(info.param); };

}  // namespace baton::interop
