// One contender of the interop tests: a process that uses baton or a peer, driven by lines.
//
// All programs speak alike. NS is CLOCK_MONOTONIC, the clock of Java's System.nanoTime(). TOKEN is
// the czxid of the entry, on etcd the create revision of the key: the server gives it, so it
// compares across libraries. ENTRY is the name of the entry, "-" where a library does not tell it
// (baton does not).
//
//   (start)                             READY NS, when connected
//   turns N COUNTER HISTORY [no-lock]   N times: acquire, add 1 to the number in COUNTER, write a
//                                       line to HISTORY (see history/holds.h), release; DONE NS
//   try                                 GRANTED NS TOKEN ENTRY, or REFUSED NS
//   acquire MS                          the same, with a timeout
//   wait                                the same, without one
//   release                             RELEASED NS
//   stand N                             STANDING NS; N more places in the queue, kept until the
//                                       end, granted or not (baton)
//   entries                             ENTRIES NS NAME:TOKEN ..., in the order of the queue
//                                       (not Curator)
//   node NAME                           MADE NS; a child of the lock's directory (kazoo)
//   directory                           THERE NS or GONE NS: the lock's directory (kazoo)
//   quit                                ends it, with exit code 0
#pragma once

#include "support/child.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::interop {

enum class Store { zk, etcd };

// On ZooKeeper curator and kazoo. On etcd go (concurrency.Mutex), v3lock (the server's lock
// service) and etcdctl (`etcdctl lock`).
enum class Library { baton, curator, kazoo, go, v3lock, etcdctl };
std::string_view name_of(Library library);

// What is not installed, and how to install it; empty: all is there. Found out by CMake.
std::string_view missing_peers(Store store);

// Which lock, and how. The directory of the lock, or the prefix of its keys, is ROOT/NAME.
struct Place {
  Store store = Store::zk;
  std::string hosts;
  std::string root;
  std::string name;
  std::chrono::milliseconds session{4000};
  // For baton: make directories that stay. kazoo needs them, it does not know containers.
  bool persistent_parents = false;
};

inline constexpr std::chrono::milliseconds kAnswer{60'000};

class Contender {
 public:
  Contender(Library library, const std::string& who, const Place& place);
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;

  const std::string& who() const noexcept { return who_; }

  void say(const std::string& command);
  // The next line, split into words; empty: none in time, or the process is gone.
  std::vector<std::string> answer(std::chrono::milliseconds limit = kAnswer);
  // Says it and waits for the answer. The first word of that; "nothing" if there is none.
  std::string ask(const std::string& command);
  // The words of the last answer: 0 what, 1 when, then the rest.
  const std::vector<std::string>& words() const noexcept { return words_; }
  std::int64_t stamp() const;   // of the last answer
  std::uint64_t token() const;  // of the last GRANTED

  bool silent() const;  // it has said nothing since the last answer
  void kill_hard();
  // Ends it: the exit code, 128 + n for signal n, nullopt: it still runs.
  std::optional<int> quit(std::chrono::milliseconds limit = kAnswer);

 private:
  const std::string who_;
  test::Child process_;  // killed with us
  std::vector<std::string> words_;
};

// CLOCK_MONOTONIC, in nanoseconds.
std::int64_t monotonic_now();

}  // namespace baton::interop
