// Who may touch our nodes, in the C client's words.
#pragma once

#include <zookeeper/zookeeper.h>

#include <string>
#include <vector>

namespace baton::internal {

// Without credentials everybody may do everything (ZooKeeper's default); with them the creator
// alone, and a group may read.
class ZkAcl {
 public:
  ZkAcl() = default;
  ZkAcl(bool authenticated, const std::string& read_group);
  const ACL_vector* get() const noexcept {
    return authenticated_ ? &vector_ : &ZOO_OPEN_ACL_UNSAFE;
  }
  ZkAcl(const ZkAcl&) = delete;
  ZkAcl& operator=(const ZkAcl&) = delete;

 private:
  bool authenticated_ = false;
  std::string scheme_;
  std::string id_;
  std::vector<ACL> entries_;
  ACL_vector vector_{};
};

}  // namespace baton::internal
