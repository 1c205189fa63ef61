// ReadCoalescer: reads lock directories. Readings that are asked for while one is under way share
// the next one: a burst of joins costs a few lists, not one each.
#pragma once

#include "zk/outbox.h"
#include "zk/path.h"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace baton::zk {

struct Listing {
  Status status = Status::lost;
  int code = 0;
  Queue queue;  // empty unless status is ok
};

class ReadCoalescer {
 public:
  // Sent after the call, so it shows everything this session did before.
  using Answer = UniqueFunction<void(const Listing&)>;
  // How much it must show of what others did before the call.
  enum class Freshness {
    session,  // at least what this session has seen
    synced,   // everything that was decided before
  };

  explicit ReadCoalescer(Outbox& outbox) : outbox_(outbox) {}
  void read(const std::string& directory, Freshness freshness, Answer answer);

 private:
  struct Reading {
    std::vector<Answer> waiting;  // for the next reading
    Freshness needed = Freshness::session;
  };
  void send(const std::string& directory, std::vector<Answer> answers, Freshness freshness);

  Outbox& outbox_;
  std::unordered_map<std::string, Reading> under_way_;
};

// A node that never is; removing it is a write that changes nothing.
inline constexpr const char* kMissingNode = "/zookeeper/baton-nobody/nothing";
// What the server says to that if all is well.
inline bool is_missing_node_answer(Status status) noexcept {
  return status == Status::no_node || status == Status::no_auth;
}

}  // namespace baton::zk
