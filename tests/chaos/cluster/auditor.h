// Asks the servers of a cluster all the time whether they have what was committed. Those of some
// versions lose it (ZOOKEEPER-4785), and find out themselves.
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

  // Does what an operator does about a server that is known to stray: gives it the data of the
  // others. False: none is. Only while nobody else breaks servers, and all are up. Throws as
  // Cluster does.
  bool mend();
  // The same until none strays any more, as far as they know. Throws if that does not come.
  void settle();

 private:
  void run(const std::stop_token& stop);
  void note(Kind kind, const Stray& stray) const;
  void wait_rounds(std::uint64_t count);

  Cluster& cluster_;
  const HistoryWriter& history_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Stray> stray_;     // not mended yet
  std::uint64_t rounds_ = 0;       // in which all were asked
  std::exception_ptr gone_wrong_;  // and nobody asks any more
  std::jthread thread_;            // last: joined first
};

}  // namespace baton::chaos
