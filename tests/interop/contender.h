// One contender of the interop tests: a process that uses baton or a peer library. The test sends
// it commands and reads its answers, one per line.
//
// All programs use the same commands and answers. NS is CLOCK_MONOTONIC, which is also the clock of
// Java's System.nanoTime(). TOKEN is the czxid of the entry, on etcd the create revision of the
// key. The server assigns it, so tokens of different libraries can be compared. ENTRY is the name
// of the entry, or "-" if the library does not report it (baton does not).
//
//   (start)                             READY NS, when connected
//   turns N COUNTER HISTORY [no-lock]   N times: acquire, add 1 to the number in COUNTER, write a
//                                       line to HISTORY (see history/holds.h), release; DONE NS
//   try                                 GRANTED NS TOKEN ENTRY, or REFUSED NS
//   acquire MS                          the same, with a timeout
//   wait                                the same, without a timeout
//   release                             RELEASED NS
//   stand N                             STANDING NS; joins the queue N more times, and keeps these
//                                       entries until the end (only baton)
//   entries                             ENTRIES NS NAME:TOKEN ..., in the order of the queue
//                                       (not Curator)
//   node NAME                           MADE NS; makes a child of the lock's directory (only kazoo)
//   directory                           THERE NS or GONE NS: whether the lock's directory exists
//                                       (only kazoo)
//   quit                                ends the program, with exit code 0
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

// The peers on ZooKeeper are curator and kazoo. The peers on etcd are go (concurrency.Mutex),
// v3lock (the lock service of the server) and etcdctl (`etcdctl lock`).
enum class Library { baton, curator, kazoo, go, v3lock, etcdctl };
std::string_view name_of(Library library);

// Names the peers that are not installed, and tells how to install them. Empty: all are installed.
// CMake finds this out.
std::string_view missing_peers(Store store);

// The lock, and how to reach it. The directory of the lock, or the prefix of its keys, is
// ROOT/NAME.
struct Place {
  Store store = Store::zk;
  std::string hosts;
  std::string root;
  std::string name;
  std::chrono::milliseconds session{4000};
  // Only for baton: make directories that stay. kazoo needs them, because it does not support
  // container nodes.
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
  // Waits for the next line and returns its words. Empty: no line came in time, or the process has
  // ended.
  std::vector<std::string> answer(std::chrono::milliseconds limit = kAnswer);
  // Sends a command and waits for the answer. Returns the first word of the answer, or "nothing" if
  // there is none.
  std::string ask(const std::string& command);
  // The words of the last answer: the first is its name, the second its time.
  const std::vector<std::string>& words() const noexcept { return words_; }
  std::int64_t stamp() const;   // the time of the last answer
  std::uint64_t token() const;  // the token of the last answer, a GRANTED

  bool silent() const;  // no output has come since the last answer
  void kill_hard();
  // Sends "quit". Returns the exit code, 128 + n for signal n, or nullopt if the process still
  // runs.
  std::optional<int> quit(std::chrono::milliseconds limit = kAnswer);

 private:
  const std::string who_;
  test::Child process_;  // killed by our destructor
  std::vector<std::string> words_;
};

// The time of CLOCK_MONOTONIC, in nanoseconds.
std::int64_t monotonic_now();

}  // namespace baton::interop
