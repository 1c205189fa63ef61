// Shared by the tests of users and certificates on etcd: captures all log lines and error messages.
#pragma once

#include "chaos/refusals.h"
#include "support/canaries.h"
#include "support/etcd_server.h"
#include "support/log_capture.h"
#include "support/temp_dir.h"

#include <baton/baton.h>

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <regex>
#include <string>
#include <vector>

namespace baton::chaos {

struct User {
  const char* name;
  const char* password;
};
inline constexpr User kRoot{"root", test::kRootPassword};
inline constexpr User kApp{"app", test::kAppPassword};
inline constexpr User kReader{"reader", test::kReaderPassword};
inline constexpr User kOther{"other", test::kOtherPassword};
inline constexpr User kPretender{"app", test::kWrongPassword};

// After each test: no log line contains a password, a token or a private key.
class EtcdSecurity : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::etcd_installed()) GTEST_SKIP() << "no etcd on this machine";
    for (const User& user : {kRoot, kApp, kReader, kOther, kPretender}) {
      secrets_.emplace_back(user.password);
    }
  }
  void TearDown() override {
    // The form of the tokens that servers give out.
    const std::regex token("[A-Za-z]{16}\\.[0-9]+");
    for (const auto& [level, line] : log_.lines()) {
      expect_discreet(line, secrets_);
      EXPECT_FALSE(std::regex_search(line, token)) << line;
    }
  }
  // Adds the lines of a private key file to the secrets.
  void keep_secret(const std::string& key_file) {
    std::ifstream file(key_file);
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("-----") && line.size() >= 16) secrets_.push_back(line);
    }
  }

  ClientOptions nobody() const {
    ClientOptions options;
    options.session_timeout = std::chrono::seconds(20);
    options.connect_timeout = std::chrono::seconds(10);
    options.log = log_.sink();  // all levels
    return options;
  }
  ClientOptions as(const User& user) const {
    ClientOptions options = nobody();
    options.credentials.user = user.name;
    options.credentials.password_file = directory_ / (user.password[0] + std::string(user.name));
    std::ofstream(options.credentials.password_file) << user.password << "\n";
    return options;
  }
  std::string refused(Errc wanted, const std::function<void()>& call) const {
    return expect_refusal(wanted, secrets_, call, std::chrono::seconds(8));
  }
  static void expect_says(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), text.npos) << text;
  }

  const test::TempDir directory_;
  const test::LogCapture log_{};

 private:
  std::vector<std::string> secrets_;
};

}  // namespace baton::chaos
