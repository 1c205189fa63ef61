#include "server_bugs.h"

#include <array>
#include <cstdlib>

namespace baton::cli {

namespace {

// Fixed in 3.4.<fixed34> and 3.5.<fixed35>; 0: that line never had it, or we do not know.
struct EtcdBug {
  int fixed34;
  int fixed35;
  const char* text;
};

constexpr EtcdBug kEtcdBugs[] = {
    {0, 3, "data can differ between members after a crash under load (3.5.0 to 3.5.2)"},
    {25, 0, "a watch can go back in time (etcd#15271, fixed in 3.4.25)"},
    {31, 13,
     "a paused former leader can revoke a live lease: a holder can lose its lock early, and only "
     "the token protects then (etcd#15247, fixed in 3.4.31 and 3.5.13)"},
    {31, 0, "watch events can be lost (etcd#17529, fixed in 3.4.31)"},
    {32, 0,
     "the revision can decrease after a crash in a compaction (etcd#17780, fixed in 3.4.32)"},
    {38, 0, "a renewal can be confirmed for a revoked lease (etcd#20813, fixed in 3.4.38)"},
};

std::array<int, 3> parse_version(const std::string& text) {
  std::array<int, 3> out{-1, -1, -1};
  const char* at = text.c_str();
  for (int& part : out) {
    char* end = nullptr;
    part = static_cast<int>(std::strtol(at, &end, 10));
    if (end == at) return {-1, -1, -1};
    at = *end == '.' ? end + 1 : end;
  }
  return out;
}

}  // namespace

std::vector<std::string> known_bugs(std::string_view backend, std::string_view version) {
  std::vector<std::string> out;
  const auto [major, minor, patch] = parse_version(std::string(version));
  if (backend == "etcd" && major == 3) {
    for (const EtcdBug& bug : kEtcdBugs) {
      const int fixed = minor == 4 ? bug.fixed34 : minor == 5 ? bug.fixed35 : 0;
      if (patch < fixed) out.emplace_back(bug.text);
    }
    if (minor < 4) out.emplace_back("versions before 3.4 are not supported");
  }
  if (backend == "zk" && major == 3) {
    if (minor < 5) out.emplace_back("versions before 3.5 are not supported");
    // Fixed in 3.8.4 and 3.9.2; the older lines end without it.
    const bool loses = minor < 8 || (minor == 8 && patch < 4) || (minor == 9 && patch < 2);
    if (minor >= 5 && loses) {
      out.emplace_back(
          "a follower that crashes while it catches up can lose transactions "
          "(ZOOKEEPER-4785, fixed in 3.8.4 and 3.9.2)");
    }
    if (minor == 9 && patch == 3) {
      out.emplace_back(
          "a follower that was behind can lose transactions for the whole ensemble when it becomes "
          "leader (ZOOKEEPER-4925, 3.9.3 only)");
    }
  }
  return out;
}

}  // namespace baton::cli
