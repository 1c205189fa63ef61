#include "server_bugs.h"

#include <array>
#include <cstdlib>

namespace baton::cli {

namespace {

// The first release of each series (3.4, 3.5, 3.6) that has the fix; 0: the series never had the
// bug, or no release with the fix is known. Taken from etcd's change logs and pull requests.
struct EtcdBug {
  int fixed34;
  int fixed35;
  int fixed36;
  const char* text;
};

constexpr EtcdBug kEtcdBugs[] = {
    {0, 3, 0,
     "data can differ between members after a crash under load (etcd#13766, 3.5.0 to 3.5.2)"},
    {25, 8, 0, "a watch can go back in time (etcd#15271, fixed in 3.4.25 and 3.5.8)"},
    {31, 13, 0, "watch events can be lost (etcd#17529, fixed in 3.4.31 and 3.5.13)"},
    {32, 14, 0,
     "the revision can decrease after a crash in a compaction: tokens can repeat (etcd#17780, "
     "fixed in 3.4.32 and 3.5.14)"},
    {34, 16, 0,
     "a watch can lose a deletion to a compaction (etcd#18089, fixed in 3.4.34 and 3.5.16)"},
    {36, 18, 0, "a watch can lose a deletion (etcd#19179, fixed in 3.4.36 and 3.5.18)"},
    {38, 23, 5,
     "a renewal can be confirmed for a lease that is revoked (etcd#20590, fixed in 3.4.38, 3.5.23 "
     "and 3.6.5)"},
    {42, 28, 9,
     "after a member was paused a read can be stale: verify() can confirm a lock that is lost "
     "(etcd#20418, fixed in 3.4.42, 3.5.28 and 3.6.9)"},
};

// Not in the table, because etcd's fix (3.4.31, 3.5.13) made the bug rarer but did not remove it.
// From 3.4.34, 3.5.16 and 3.6.0 on, a member whose raft clock has just ticked does not ask the
// other members whether it is still the leader (etcd PR 18428). The first tick after a pause
// counts, too.
constexpr EtcdBug kLeaseRevoked = {
    31, 13, 0,
    "a leader that was paused and resumes can revoke a live lease: a holder can lose its lock "
    "early, and only the token protects then (etcd#15247, rarer from 3.4.31 and 3.5.13 on)"};
constexpr char kLeaseStillRevoked[] =
    "a leader that was paused and resumes can still revoke a live lease: a holder can lose its "
    "lock early, and only the token protects then (etcd#15247; seen on 3.5.16 and 3.5.30; no "
    "release is known to be free of it)";

int fixed_in(const EtcdBug& bug, int minor) {
  switch (minor) {
    case 4:
      return bug.fixed34;
    case 5:
      return bug.fixed35;
    case 6:
      return bug.fixed36;
    default:
      return 0;
  }
}

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
      if (patch < fixed_in(bug, minor)) out.emplace_back(bug.text);
    }
    const bool often = patch < fixed_in(kLeaseRevoked, minor);
    if (minor >= 4) out.emplace_back(often ? kLeaseRevoked.text : kLeaseStillRevoked);
    if (minor < 4) out.emplace_back("versions before 3.4 are not supported");
    if (minor == 4) {
      out.emplace_back("etcd 3.4 is no longer maintained (3.4.45 was its last release)");
    }
  }
  if (backend == "zk" && major == 3) {
    if (minor < 5) out.emplace_back("versions before 3.5 are not supported");
    // Fixed in 3.8.4 and 3.9.2; 3.5, 3.6 and 3.7 never got the fix.
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
