// The nodes of a ZooKeeper server in memory, and what requests do to them, without connections.
// Each fake of the unit tests and each server of the simulator has one tree.
#pragma once

#include "zk/transport.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace baton::zk {

struct FakeNode {
  enum class Kind { permanent, container, entry };
  Kind kind = Kind::permanent;
  std::string data;
  std::int64_t owner = 0;        // session of an entry
  std::uint64_t created_at = 0;  // czxid
  std::uint64_t changed_at = 0;  // mzxid
  std::int64_t ctime_ms = 0;     // wall clock
  std::int32_t next_number = 0;  // for the next sequential child; stays at 2147483647
  bool operator==(const FakeNode&) const = default;
};

using FakeTree = std::map<std::string, FakeNode>;

std::string fake_parent_of(const std::string& path);
// The order of the names is arbitrary on purpose: a server promises none.
std::vector<std::string> fake_children_in(const FakeTree& tree, const std::string& path);

// Each change increases the zxid, even if it is refused.
struct FakeZkTree {
  FakeTree nodes;
  std::map<std::string, std::uint64_t> gone_at;  // zxid of removals
  std::uint64_t zxid = 0x100000000;

  const FakeNode* find(const std::string& path) const;
  std::vector<std::string> entries_of(std::int64_t session) const;  // paths
  // ZOK, or another code of the C client.
  int create(const Request& request, FakeNode::Kind kind, std::int64_t owner, std::int64_t ctime_ms,
             Reply& reply);
  int erase(const std::string& path);
  // Returns the path of an empty container that has had children, or "" if there is none.
  std::string reapable() const;
};

// Answers a read. Does not set watches.
int fake_read(const FakeTree& tree, const Request& request, Reply& reply);

}  // namespace baton::zk
