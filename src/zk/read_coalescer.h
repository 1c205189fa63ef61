// ReadCoalescer: reads lock directories. Reads that are requested while one is under way share the
// next one, so a burst of joins costs a few reads, not one for each join.
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
  // The read is sent after the call to read(), so it shows everything that this session did before.
  using Answer = UniqueFunction<void(const Listing&)>;
  // Which changes of other sessions the read must show.
  enum class Freshness {
    session,  // at least those that this session has seen
    synced,   // all that were committed before the call
  };

  explicit ReadCoalescer(Outbox& outbox) : outbox_(outbox) {}
  void read(const std::string& directory, Freshness freshness, Answer answer);

 private:
  struct Reading {
    std::vector<Answer> waiting;  // for the next read
    Freshness needed = Freshness::session;
  };
  void send(const std::string& directory, std::vector<Answer> answers, Freshness freshness);

  Outbox& outbox_;
  std::unordered_map<std::string, Reading> under_way_;
};

// A node that never exists. Removing it is a write that changes nothing.
inline constexpr const char* kMissingNode = "/zookeeper/baton-nobody/nothing";
// The normal answers of a server to that removal.
inline bool is_missing_node_answer(Status status) noexcept {
  return status == Status::no_node || status == Status::no_auth;
}

}  // namespace baton::zk
