#include "chaos/cluster/zk_audit.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;

constexpr int kInARow = 3;

// When a process began, on the boot clock; zero if it is gone.
std::chrono::nanoseconds started(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  // The name is in brackets, and may have some of its own. Its start is the 20th word after it.
  std::istringstream words(line.substr(std::min(line.rfind(')') + 1, line.size())));
  std::string word;
  for (int i = 0; i < 20; ++i) words >> word;
  if (!words) return {};
  return std::chrono::nanoseconds(1s) / ::sysconf(_SC_CLK_TCK) * std::stoll(word);
}

}  // namespace

ZkAudit::ZkAudit(test::ZkEnsemble& servers)
    : servers_(servers), said_(static_cast<std::size_t>(servers.size())) {}

std::vector<Stray> ZkAudit::look() {
  std::vector<Stray> found;
  std::optional<Stray> right;
  for (int i = 0; i < servers_.size(); ++i) {
    const bool wrong = astray(i);
    const Stray stray{i, said_.at(static_cast<std::size_t>(i)).since};
    if (wrong) {
      found.push_back(stray);
    } else {
      right = stray;
    }
  }
  // All who follow have other data than the one who leads: it is the one.
  if (right && static_cast<int>(found.size()) == servers_.size() - 1) return {*right};
  return found;
}

bool ZkAudit::astray(int i) {
  Said& said = said_.at(static_cast<std::size_t>(i));
  const pid_t pid = servers_.pid(i);
  const auto answer = servers_.mntr(i);
  if (pid == -1 || servers_.pid(i) != pid) return false;
  if (said.pid != pid) said = {pid, started(pid), std::nullopt, 0};
  const auto state = answer.find("zk_peer_state");
  const auto count = answer.find("zk_digest_mismatches_count");
  if (state == answer.end() || count == answer.end() || !state->second.ends_with("broadcast")) {
    said.mismatches.reset();
    said.in_a_row = 0;
    return false;
  }
  const std::int64_t now = std::stoll(count->second);
  said.in_a_row = said.mismatches && now > *said.mismatches ? said.in_a_row + 1 : 0;
  said.mismatches = now;
  return said.in_a_row >= kInARow;
}

}  // namespace baton::chaos
