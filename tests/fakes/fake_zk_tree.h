// The nodes of a ZooKeeper server in memory: what requests do to them, without connections. The
// fakes of the unit tests and the servers of the simulator have one each.
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
  std::int32_t next_number = 0;  // of its children; stays at 2147483647
  bool operator==(const FakeNode&) const = default;
};

using FakeTree = std::map<std::string, FakeNode>;

std::string fake_parent_of(const std::string& path);
// In an order that nobody should rely on: the server promises none.
std::vector<std::string> fake_children_in(const FakeTree& tree, const std::string& path);

// Changes count their zxid themselves, refused or not.
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
  // Of a container that was used and is empty; "": there is none.
  std::string reapable() const;
};

// What a read answers, watches aside.
int fake_read(const FakeTree& tree, const Request& request, Reply& reply);

}  // namespace baton::zk
