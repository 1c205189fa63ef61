// Asks the servers of a cluster continuously whether they have lost committed data. Servers of some
// versions lose data (ZOOKEEPER-4785) and detect it themselves.
#pragma once

#include "chaos/cluster/cluster.h"
#include "chaos/cluster/history.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace baton::chaos {

class Auditor {
 public:
  Auditor(Cluster& cluster, const HistoryWriter& history);

  // Repairs a server that is known to have lost data, as an operator would: it receives the data of
  // the others. Returns false if no such server is known. Call it only while nothing else injects
  // faults into servers and all of them run. Throws as Cluster does.
  bool mend();
  // Repeats mend() until no server is known to have lost data. Throws if that does not happen.
  void settle();

 private:
  void run(const std::stop_token& stop);
  void note(Kind kind, const Stray& stray) const;
  void wait_rounds(std::uint64_t count);

  Cluster& cluster_;
  const HistoryWriter& history_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Stray> stray_;     // not repaired yet
  std::uint64_t rounds_ = 0;       // in which all servers were asked
  std::exception_ptr gone_wrong_;  // if set, the thread does not ask any more
  std::jthread thread_;            // last member: it is joined first
};

}  // namespace baton::chaos
