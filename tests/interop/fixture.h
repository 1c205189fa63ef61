// What the interop tests of all stores share: a server, contenders, and a view of their queue.
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

// What one store has of its own.
struct Setting {
  Store store;
  // The server for all tests of this process.
  const std::string& (*server)();
  // Which contender can show the queue.
  Library onlooker;
  // A session may outlive its timeout by so much.
  std::chrono::milliseconds late;
};

class InteropTest : public ::testing::Test {
 protected:
  explicit InteropTest(const Setting& setting) : setting_(setting) {}
  void SetUp() override;

  // The server to use.
  virtual std::string server() { return setting_.server(); }

  // Connected, and on our clock. Throws: without it, every later step would wait for nothing.
  std::unique_ptr<Contender> start(Library library, const std::string& who) const;
  std::unique_ptr<Contender> start_onlooker() const { return start(setting_.onlooker, "onlooker"); }

  // The tokens of the queue in its order, as an onlooker sees it.
  static std::vector<std::uint64_t> queue(Contender& onlooker);
  // Begins to wait, and returns when its entry is in the queue behind `others` others.
  static void wait_behind(std::size_t others, Contender& contender, Contender& onlooker,
                          const std::string& how = "wait");
  static void expect_granted(Contender& contender);
  // Holds; the other is refused, until it is free again.
  static void keeps_out(Contender& holder, Contender& other);

  const Setting& setting_;
  Place place_;
};

constexpr auto of_param = [](const auto& info) { return text_of(info.param); };

}  // namespace baton::interop
