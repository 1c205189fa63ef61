// The client processes of a run of chaos, each behind a proxy of its own.
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
  std::string worker;  // the program
  // Sets the wall clock of a process, and of no other: clock_shim.cpp. Empty: that is not done.
  std::string clock_library;
  std::string directory;  // of the histories
  int clients = 16;
  int locks = 4;
  int threads = 2;
  std::uint64_t seed = 1;
  std::string control;  // a defence that is switched off; empty: none
};

// A place for a client: the process that is there now, and its way to the servers.
struct Seat {
  std::uint32_t number = 0;            // of the process
  std::unique_ptr<test::Proxy> proxy;  // one route to each server
  std::string url;                     // by these routes
  std::string clock_file;              // how far its wall clock is off; empty: it is not ours
  std::unique_ptr<test::Child> child;
};

// Threads: one at a time.
class Crew {
 public:
  // Starts all. Processes end with the thread that started them: it must outlive the crew.
  Crew(CrewPlan plan, const Cluster& cluster, const HistoryWriter& history);

  std::vector<Seat>& seats() { return seats_; }
  Seat* find(std::uint32_t number);  // nullptr: that process is not any more

  // All write it down, and return when it is so.
  void kill(Seat& seat);   // and starts another in its place
  void pause(Seat& seat);  // throws if it does not stop
  void resume(Seat& seat);
  void set_clock(Seat& seat, std::chrono::seconds ahead);  // throws if the process does not see it
  void heal();                                             // all links

  // Those that ended though nobody ended them; they are replaced.
  std::vector<std::string> accidents();
  // Tells all to stop, and waits for them. What went wrong.
  std::vector<std::string> finish();

 private:
  void start(Seat& seat);
  void write(Kind kind, const Seat& seat) const;

  const CrewPlan plan_;
  const HistoryWriter& history_;
  std::uint32_t last_ = 0;  // number given
  std::vector<Seat> seats_;
};

}  // namespace baton::chaos
