// Acl: the access control list of baton's nodes, in the types of the C client.
#pragma once

#include "zk/namespace.h"

#include <zookeeper/zookeeper.h>

#include <string>
#include <vector>

namespace baton::zk {

// Without credentials every client has all permissions (ZooKeeper's default). With credentials only
// the creator has them, and a group may read.
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
