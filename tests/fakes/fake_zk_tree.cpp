#include "fakes/fake_zk_tree.h"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace baton::zk {

std::string fake_parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::vector<std::string> fake_children_in(const FakeTree& tree, const std::string& path) {
  const std::string below = path == "/" ? path : path + "/";
  std::vector<std::string> names;
  for (auto it = tree.upper_bound(below); it != tree.end(); ++it) {
    if (!it->first.starts_with(below)) break;
    if (it->first.find('/', below.size()) != std::string::npos) continue;
    names.push_back(it->first.substr(below.size()));
  }
  std::reverse(names.begin(), names.end());
  return names;
}

const FakeNode* FakeZkTree::find(const std::string& path) const {
  const auto found = nodes.find(path);
  return found == nodes.end() ? nullptr : &found->second;
}

std::vector<std::string> FakeZkTree::entries_of(std::int64_t session) const {
  std::vector<std::string> paths;
  for (const auto& [path, node] : nodes) {
    if (node.owner == session) paths.push_back(path);
  }
  return paths;
}

std::string FakeZkTree::reapable() const {
  for (const auto& [path, node] : nodes) {
    const bool used = node.kind == FakeNode::Kind::container && node.next_number > 0;
    if (used && fake_children_in(nodes, path).empty()) return path;
  }
  return {};
}

int FakeZkTree::erase(const std::string& path) {
  ++zxid;
  if (find(path) == nullptr) return ZNONODE;
  if (!fake_children_in(nodes, path).empty()) return ZNOTEMPTY;
  nodes.erase(path);
  gone_at[path] = zxid;
  return ZOK;
}

int FakeZkTree::create(const Request& request, FakeNode::Kind kind, std::int64_t owner,
                       std::int64_t ctime_ms, Reply& reply) {
  ++zxid;
  const std::string up = fake_parent_of(request.path);
  const auto parent = nodes.find(up);
  if (!up.empty() && parent == nodes.end()) return ZNONODE;
  if (!up.empty() && parent->second.kind == FakeNode::Kind::entry) return ZNOCHILDRENFOREPHEMERALS;
  reply.path = request.path;
  if (request.kind == Request::Kind::create_entry) {
    char number[16];
    std::snprintf(number, sizeof number, "%010d", up.empty() ? 0 : parent->second.next_number);
    reply.path += number;
  }
  if (find(reply.path) != nullptr) return ZNODEEXISTS;
  if (!up.empty() && parent->second.next_number != 2147483647) ++parent->second.next_number;
  FakeNode node;
  node.kind = kind;
  node.data = request.data;
  node.owner = owner;
  node.created_at = node.changed_at = zxid;
  node.ctime_ms = ctime_ms;
  reply.created_at = node.created_at;
  reply.ctime_ms = node.ctime_ms;
  reply.owner = node.owner;
  nodes.emplace(reply.path, std::move(node));
  return ZOK;
}

int fake_read(const FakeTree& tree, const Request& request, Reply& reply) {
  const auto found = tree.find(request.path);
  if (request.kind == Request::Kind::children) {
    if (found == tree.end() && request.path != "/") return ZNONODE;
    reply.children = fake_children_in(tree, request.path);
    return ZOK;
  }
  if (request.path == "/") return ZOK;
  if (found == tree.end()) return ZNONODE;
  reply.data = found->second.data;
  reply.created_at = found->second.created_at;
  reply.ctime_ms = found->second.ctime_ms;
  reply.owner = found->second.owner;
  return ZOK;
}

}  // namespace baton::zk
