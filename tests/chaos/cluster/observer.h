// Looks at the queues of a cluster all the time, and writes down who was in line and until when.
#pragma once

#include "chaos/cluster/cluster.h"
#include "chaos/cluster/history.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

namespace baton::chaos {

class Observer {
 public:
  Observer(Cluster& cluster, const HistoryWriter& history, int locks);

  // As it was a moment ago; empty if nobody answers at present. The first of each lock holds it.
  std::vector<InLine> latest() const;
  void stop();  // and writes what is left to be written

 private:
  struct Sight {
    InLine entry;
    std::chrono::nanoseconds asked{};
    std::chrono::nanoseconds answered{};
  };
  void run(const std::stop_token& stop);
  void look();
  void present(const Sight& sight) const;

  Cluster& cluster_;
  const HistoryWriter& history_;
  const int locks_;
  std::map<std::uint64_t, Sight> seen_;  // by token; when last seen
  mutable std::mutex mutex_;
  std::vector<InLine> latest_;
  std::jthread thread_;  // last: joined first
};

}  // namespace baton::chaos
