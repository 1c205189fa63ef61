// A store of its own for every test.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "support/baton_process.h"

namespace baton::cli::test {

class CliTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // A command line on this test's store.
  std::vector<std::string> on_store(std::vector<std::string> args) const;
  std::vector<std::string> run_sh(const std::string& lock, const std::string& script,
                                  std::vector<std::string> options = {}) const;

  // The lock as `show --json` prints it.
  nlohmann::json show(const std::string& lock) const;
  // Waits until the queue of the lock has this many entries.
  bool queue_gets(const std::string& lock, std::size_t entries) const;

  const std::string& directory() const { return directory_; }
  std::string url() const { return "file://" + directory_ + "/store"; }

 private:
  std::string directory_;
};

}  // namespace baton::cli::test
