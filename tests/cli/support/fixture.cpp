#include "support/fixture.h"

#include <stdlib.h>

#include <filesystem>
#include <sstream>
#include <stdexcept>

namespace baton::cli::test {

void CliTest::SetUp() {
  std::string pattern = (std::filesystem::temp_directory_path() / "baton-cli-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
  directory_ = pattern;
}

void CliTest::TearDown() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::vector<std::string> CliTest::on_store(std::vector<std::string> args) const {
  args.insert(args.begin(), {"--url", url()});
  return args;
}

std::vector<std::string> CliTest::run_sh(const std::string& lock, const std::string& script,
                                         std::vector<std::string> options) const {
  std::vector<std::string> args{"run", lock};
  args.insert(args.end(), options.begin(), options.end());
  args.insert(args.end(), {"--", "sh", "-c", script});
  return on_store(std::move(args));
}

nlohmann::json CliTest::show(const std::string& lock) const {
  BatonProcess process(on_store({"show", lock, "--json"}));
  const int code = process.wait();
  EXPECT_EQ(code, 0) << process.err();
  return nlohmann::json::parse(process.out());
}

bool CliTest::queue_gets(const std::string& lock, std::size_t entries) const {
  return eventually([&] { return show(lock)["entries"].size() == entries; });
}

std::vector<pid_t> CliTest::pids(const std::string& line) {
  std::vector<pid_t> out;
  std::istringstream words(line);
  for (pid_t pid = 0; words >> pid;) out.push_back(pid);
  return out;
}

std::vector<std::string> CliTest::checker(const std::vector<pid_t>& pids) const {
  std::string script;
  for (const pid_t pid : pids) {
    script += "[ -d /proc/" + std::to_string(pid) + " ] && echo alive; ";
  }
  return run_sh("x", script + "echo checked");
}

void CliTest::expect_checked(BatonProcess& process) {
  EXPECT_EQ(process.wait(), 0) << process.err();
  EXPECT_EQ(process.out(), "checked\n");
}

}  // namespace baton::cli::test
