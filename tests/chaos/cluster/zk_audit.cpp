#include "chaos/cluster/zk_audit.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;

constexpr int kInARow = 3;

// The start time of a process on the boot clock; zero if the process is gone.
std::chrono::nanoseconds started(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  // The name is in brackets and may contain brackets. The start time is the 20th word after it.
  std::istringstream words(line.substr(std::min(line.rfind(')') + 1, line.size())));
  std::string word;
  for (int i = 0; i < 20; ++i) words >> word;
  if (!words) return {};
  return std::chrono::nanoseconds(1s) / ::sysconf(_SC_CLK_TCK) * std::stoll(word);
}

}  // namespace

ZkAudit::ZkAudit(test::ZkEnsemble& servers)
    : servers_(servers), said_(static_cast<std::size_t>(servers.size())) {}

std::optional<Stray> ZkAudit::look() {
  int leader = -1;
  bool all_serve = true;
  std::vector<std::int64_t> counts;
  for (int i = 0; i < servers_.size(); ++i) {
    const auto answer = ask(i);
    all_serve = all_serve && answer && !(answer->leads && leader != -1);
    if (answer && answer->leads) leader = i;
    counts.push_back(answer ? answer->mismatches : 0);
  }
  if (!all_serve || leader == -1 || leader != std::exchange(leader_, leader)) {
    leader_ = all_serve ? leader : -1;
    for (Said& said : said_) {
      said.mismatches.reset();
      said.in_a_row = 0;
    }
    return std::nullopt;
  }
  std::vector<int> wrong;
  int longest = 0;
  for (int i = 0; i < servers_.size(); ++i) {
    Said& said = said_.at(static_cast<std::size_t>(i));
    const auto now = counts.at(static_cast<std::size_t>(i));
    said.in_a_row = said.mismatches && now > *said.mismatches ? said.in_a_row + 1 : 0;
    said.mismatches = now;
    longest = std::max(longest, said.in_a_row);
    if (said.in_a_row >= kInARow) wrong.push_back(i);
  }
  // Any other wrong server has begun to count by then, too.
  if (longest < 2 * kInARow) return std::nullopt;
  const int one = wrong.size() == 1 ? wrong.front() : leader;
  return Stray{one, said_.at(static_cast<std::size_t>(one)).since};
}

std::optional<ZkAudit::Answer> ZkAudit::ask(int i) {
  Said& said = said_.at(static_cast<std::size_t>(i));
  const pid_t pid = servers_.pid(i);
  const auto words = servers_.mntr(i);
  if (pid == -1 || servers_.pid(i) != pid) return std::nullopt;
  if (said.pid != pid) said = {pid, said.any ? said.since : started(pid), false, std::nullopt, 0};
  const auto state = words.find("zk_peer_state");
  const auto count = words.find("zk_digest_mismatches_count");
  if (state == words.end() || count == words.end()) return std::nullopt;
  if (!state->second.ends_with("broadcast")) return std::nullopt;
  Answer answer;
  answer.leads = state->second.starts_with("leading");
  const auto& text = count->second;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), answer.mismatches);
  // The answer may be incomplete.
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  said.any = said.any || answer.mismatches > 0;
  return answer;
}

}  // namespace baton::chaos
