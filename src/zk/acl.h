// Who may touch our nodes, in the C client's words.
#pragma once

#include "zk/namespace.h"

#include <zookeeper/zookeeper.h>

#include <string>
#include <vector>

namespace baton::zk {

// Without credentials everybody may do everything (ZooKeeper's default); with them the creator
// alone, and a group may read.
class Acl {
 public:
  Acl() = default;
  Acl(bool authenticated, const std::string& read_group);
  const ACL_vector* get() const noexcept {
    return authenticated_ ? &vector_ : &ZOO_OPEN_ACL_UNSAFE;
  }
  Acl(const Acl&) = delete;
  Acl& operator=(const Acl&) = delete;

 private:
  bool authenticated_ = false;
  std::string scheme_;
  std::string id_;
  std::vector<ACL> entries_;
  ACL_vector vector_{};
};

}  // namespace baton::zk
