// The client processes of a chaos run, each behind its own proxy.
#pragma once

#include "chaos/cluster/cluster.h"
#include "chaos/cluster/history.h"
#include "support/child.h"
#include "support/proxy.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace baton::chaos {

struct CrewPlan {
  std::string worker;  // path of the worker program
  // The library clock_shim.cpp, which sets the wall clock of one process only. Empty: clocks are
  // not set.
  std::string clock_library;
  std::string directory;  // where histories are written
  int clients = 16;
  int locks = 4;
  int threads = 2;
  std::uint64_t seed = 1;
  std::string control;  // the protection that is switched off; empty: none
};

// A place for a client: its current process, and its connection to the servers.
struct Seat {
  std::uint32_t number = 0;            // of the current process
  std::unique_ptr<test::Proxy> proxy;  // one route to each server
  std::string url;                     // through these routes
  std::string clock_file;              // has the offset of its wall clock; empty: not set
  std::unique_ptr<test::Child> child;
};

// Not thread-safe.
class Crew {
 public:
  // Starts all processes. They end with the thread that started them, so that thread must outlive
  // the crew.
  Crew(CrewPlan plan, const Cluster& cluster, const HistoryWriter& history);

  std::vector<Seat>& seats() { return seats_; }
  Seat* find(std::uint32_t number);  // nullptr: that process does not run any more

  // These calls write a record, and return when the effect is verified.
  void kill(Seat& seat);   // also starts another process in its place
  void pause(Seat& seat);  // throws if it does not stop
  void resume(Seat& seat);
  void set_clock(Seat& seat, std::chrono::seconds ahead);  // throws if the process does not see it
  void heal();                                             // restores all links

  // Describes the processes that ended by themselves, and replaces them.
  std::vector<std::string> accidents();
  // Asks all processes to end, and waits for them. Returns what went wrong.
  std::vector<std::string> finish();

 private:
  void start(Seat& seat);
  void write(Kind kind, const Seat& seat) const;

  const CrewPlan plan_;
  const HistoryWriter& history_;
  std::uint32_t last_ = 0;  // the last number that was given to a process
  std::vector<Seat> seats_;
};

}  // namespace baton::chaos
