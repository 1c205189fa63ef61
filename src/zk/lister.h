// ZkLister: reads lock directories. Readings that are asked for while one is under way share the
// next one: a burst of joins costs a few lists, not one each.
#pragma once

#include "zk/outbox.h"
#include "zk/path.h"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace baton::internal {

struct ZkListing {
  ZkStatus status = ZkStatus::lost;
  int code = 0;
  ZkQueue queue;  // empty unless status is ok
};

class ZkLister {
 public:
  // Sent after the call, so it shows everything this session did before.
  using Answer = UniqueFunction<void(const ZkListing&)>;
  // How much it must show of what others did before the call.
  enum class Freshness {
    session,  // at least what this session has seen
    synced,   // everything that was decided before
  };

  explicit ZkLister(ZkOutbox& outbox) : outbox_(outbox) {}
  void read(const std::string& directory, Freshness freshness, Answer answer);

 private:
  struct Reading {
    std::vector<Answer> waiting;  // for the next reading
    Freshness needed = Freshness::session;
  };
  void send(const std::string& directory, std::vector<Answer> answers, Freshness freshness);

  ZkOutbox& outbox_;
  std::unordered_map<std::string, Reading> under_way_;
};

// A node that never is; removing it is a write that changes nothing.
inline constexpr const char* kZkNobody = "/zookeeper/baton-nobody/nothing";
// What the server says to that if all is well.
inline bool zk_nothing_removed(ZkStatus status) noexcept {
  return status == ZkStatus::no_node || status == ZkStatus::no_auth;
}

}  // namespace baton::internal
