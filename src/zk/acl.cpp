#include "zk/acl.h"

#include <cstdint>

namespace baton::zk {

Acl::Acl(bool authenticated, const std::string& read_group) : authenticated_(authenticated) {
  entries_.push_back({ZOO_PERM_ALL, ZOO_AUTH_IDS});
  if (const auto colon = read_group.find(':'); colon != std::string::npos) {
    scheme_ = read_group.substr(0, colon);
    id_ = read_group.substr(colon + 1);
    entries_.push_back({ZOO_PERM_READ, Id{scheme_.data(), id_.data()}});
  }
  vector_.count = static_cast<std::int32_t>(entries_.size());
  vector_.data = entries_.data();
}

}  // namespace baton::zk
