// Calls that are refused: soon, with an error that says why, and that gives no secret away.
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

// No secret is in this text, as it is or in hex, base64 or percent-encoded, nor how it begins.
inline void expect_discreet(const std::string& text, const std::vector<std::string>& secrets) {
  for (const auto& secret : secrets) EXPECT_EQ(test::trace_in(text, secret), "") << "in a message";
}

// The call fails with this, within the limit, and says nothing that it should not. Its words.
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
