// The search for secrets must find a secret in every form, and must find nothing else.
#include "support/base64.h"
#include "support/canaries.h"
#include "support/run.h"
#include "support/secret_search.h"
#include "support/temp_dir.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace baton::test {
namespace {

std::string hex_of(const std::string& text) {
  std::string out;
  for (const unsigned char c : text) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", c);
    out += two;
  }
  return out;
}

TEST(SecretSearch, FindsASecretInEveryForm) {
  for (const std::string secret : kCanaries) {
    EXPECT_NE(trace_in("it was " + secret + ".", secret), "");
    EXPECT_NE(trace_in("cut: " + secret.substr(0, 8), secret), "");
    EXPECT_NE(trace_in("hex " + hex_of(secret), secret), "");
    for (const char* before : {"", "a", "ab", "app:", "user:"}) {
      EXPECT_NE(trace_in("Basic " + to_base64(before + secret + "x"), secret), "") << before;
    }
    std::string percent;
    for (const unsigned char c : secret) percent += "%" + hex_of({static_cast<char>(c)});
    EXPECT_NE(trace_in("GET /" + percent, secret), "");
    EXPECT_EQ(trace_in("it was " + secret.substr(0, 7) + "?", secret), "");
  }
  EXPECT_NE(trace_in("/blue%2Dheron%2D17", kAppPassword), "");
}

// Secrets that servers make can contain any bytes.
TEST(SecretSearch, FindsBytesThatAreNoText) {
  std::string secret;
  for (int i = 0; i < 16; ++i) secret += static_cast<char>(i * 17);
  EXPECT_NE(trace_in("x" + secret, secret), "");
  EXPECT_NE(trace_in("0x" + hex_of(secret), secret), "");
  EXPECT_NE(trace_in(to_base64(secret), secret), "");
}

TEST(SecretScan, FindsAPlantedSecretAndSaysWhere) {
  const TempDir directory;
  const std::string log = directory / "LastTest.log";
  std::ofstream(log) << "all is well\nthe password was " << kReaderPassword << "\n";
  const auto found = run({BATON_SECRET_SCAN, directory.path()});
  EXPECT_EQ(found.code, 1);
  EXPECT_NE(found.out.find("LastTest.log:2: canary 3"), std::string::npos) << found.out;
  EXPECT_EQ(trace_in(found.out, kReaderPassword), "") << "it must not repeat it";
  std::ofstream(log) << "all is well\n";
  EXPECT_EQ(run({BATON_SECRET_SCAN, log}).code, 0);
  EXPECT_EQ(run({BATON_SECRET_SCAN, directory / "nothing"}).code, 2);
  EXPECT_EQ(run({BATON_SECRET_SCAN, log, directory / "nothing"}).code, 2) << "of what was named";
}

}  // namespace
}  // namespace baton::test
