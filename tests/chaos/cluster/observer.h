// Reads the queues of a cluster continuously, and records when each entry was there.
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

  // The entries of the last successful reading; empty if the last reading failed. The first entry
  // of each lock is the holder.
  std::vector<InLine> latest() const;
  void stop();  // stops the thread and writes the remaining records

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
  std::map<std::uint64_t, Sight> seen_;  // by token; the last reading of each entry
  mutable std::mutex mutex_;
  std::vector<InLine> latest_;
  std::jthread thread_;  // last member: it is joined first
};

}  // namespace baton::chaos
