// Checks of calls that must be refused: soon, with an error that names the reason and shows no
// secret.
#pragma once

#include "support/boot_clock.h"
#include "support/secret_search.h"

#include <baton/baton.h>

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace baton::chaos {

// The text contains no secret and no beginning of one, neither plain nor in hex, base64 or percent
// encoding.
inline void expect_discreet(const std::string& text, const std::vector<std::string>& secrets) {
  for (const auto& secret : secrets) EXPECT_EQ(test::trace_in(text, secret), "") << "in a message";
}

// Expects that the call fails with this error within the limit, and shows no secret. Returns the
// message.
inline std::string expect_refusal(
    Errc wanted, const std::vector<std::string>& secrets, const std::function<void()>& call,
    std::chrono::milliseconds limit = std::chrono::milliseconds(10'000)) {
  const test::Stopwatch watch;
  std::string text;
  try {
    call();
    ADD_FAILURE() << "it did not fail";
  } catch (const Error& e) {
    EXPECT_EQ(e.errc(), wanted) << e.what();
    text = e.what();
    expect_discreet(text, secrets);
  }
  EXPECT_LT(watch.elapsed(), limit) << "that is no refusal, that is a timeout: " << text;
  return text;
}

}  // namespace baton::chaos
