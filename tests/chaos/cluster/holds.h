// The records of a run in one index: holds, entries as the observer saw them, and the lives of
// processes.
#pragma once

#include "chaos/cluster/history.h"
#include "chaos/cluster/verdict.h"
#include "history/holds.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::chaos {

using Time = std::chrono::nanoseconds;
using Moment = std::optional<Time>;

// One acquire and its result. A record of tests/history has exactly one beginning and one end. Here
// each checker chooses from all proven moments those that it can rely on.
struct Hold {
  std::uint32_t client = 0;
  std::uint32_t lock = 0;
  std::uint64_t op = 0;
  std::uint64_t token = 0;
  Moment asked, answer_due, granted, gave_up, first_valid, last_valid, invalid, lost;
  Moment release, release_due, released;  // released: the call has returned or thrown
  bool confirmed = false;                 // release() returned: the store had the entry until then
  Time until{};                           // the latest deadline of any `valid` record
  Moment revived;                         // valid() returned true after the lock was lost
  std::uint64_t code = 0;                 // error code of the loss, or of the failed acquire
};

// What the observer saw of one entry.
struct Entry {
  Moment seen;     // in the queue from here on, for certain
  Moment present;  // still there at this moment, for certain
  Moment gone;     // no longer there
  Moment evicted;  // an operator began to remove it
  bool foreign = false;

  // The first reading without the entry, the last reading before that with it, and the next one
  // that shows it again.
  Moment first_gone, before_gone, back;
};

// Proof from the readings that a server has lost committed data. Entries that their owners had
// released or lost, and that had been seen gone, are there again: several in one reading, or one
// while a server is known to have lost data. The server may have been wrong from the first moment
// at which one of these entries was seen gone until that reading.
struct Hole {
  Time from{}, to{};
  std::size_t entries = 0;
};

// A server that reported itself that it has lost committed data.
struct Astray {
  std::uint64_t server = 0;
  Time from{}, known{}, to{};
};

struct Life {
  Moment start, stop, killed;
  std::vector<std::pair<Time, Time>> pauses;
  // How long the process was stopped within [from, to].
  Time paused_between(Time from, Time to) const;
};

struct Index {
  // servers_may_forget: the servers of this store have a bug that makes holes.
  explicit Index(const std::vector<Record>& records, bool servers_may_forget = false);

  std::vector<Hold> holds;  // in the order of the records
  // Holds that are proven valid at least once, by lock. The values are indexes into `holds`, sorted
  // by the first proof.
  std::map<std::uint32_t, std::vector<std::size_t>> grants;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Entry> entries;  // by lock and token
  std::map<std::uint32_t, Life> lives;
  std::vector<Hole> holes;
  std::vector<Astray> astray;
  Time begin{}, end{};
  Moment calm;

  const Entry* entry(const Hold& hold) const;
  const Astray* astray_at(Time at) const;  // nullptr: no server is known to have lost data then
  Moment evicted(const Hold& hold) const;
  // For the checkers of tests/history; each number is an index into `holds`. A hold lasts from its
  // first proof to just after its last, but ends when an eviction begins.
  history::Holds proven(const std::vector<std::size_t>& numbers) const;
  const Life& life(std::uint32_t client) const;
  std::string when(Time at) const;  // "at 12.345 s" since the first record
  std::string who(const Hold& hold) const;

 private:
  void find_holes();
};

// Collects the objections of the checkers.
class Bench {
 public:
  Bench(const std::vector<Record>& records, const Index& index, const JudgeOptions& options,
        Verdict& verdict);
  void judged(Checker checker, std::size_t count = 1);
  // bereft: the hold to excuse if a bug of the store has removed its entry. If the store confirmed
  // the release of the hold, it still had the entry, and nothing is excused.
  void object(Checker checker, Time at, const std::string& words, const Hold* bereft = nullptr);

  void excuse(Checker checker, std::string_view issue, const std::string& words);
  // True if a server may have shown wrong data at this moment, by an allowance.
  bool may_forget(Time at) const;

  const std::vector<Record>& records;
  const Index& index;
  const JudgeOptions& options;
  Verdict& verdict;

 private:
  struct Window {
    const Allowance* allowance;
    Time from, to;
    std::uint64_t clients;  // how many clients may be excused, by all checkers together
    std::shared_ptr<std::set<std::uint32_t>> excused = std::make_shared<std::set<std::uint32_t>>();
  };
  std::vector<Window> windows_;
};

void check_form(Bench& bench);
void check_overlap(Bench& bench);
void check_evictions(Bench& bench);  // reports as overlap
void check_revival(Bench& bench);
void check_tokens(Bench& bench);
void check_fifo(Bench& bench);
void check_progress(Bench& bench);
void check_leaks(Bench& bench);
void check_early_loss(Bench& bench);  // also collects the margins
void check_register(Bench& bench);
void collect_handovers(Bench& bench);

std::string in_ms(Time duration);    // "12.3 ms"
Moment earlier(Moment a, Moment b);  // the earlier of the known ones

// Finds the earliest of all items with a greater key.
class EarliestAbove {
 public:
  struct Item {
    std::uint64_t key;
    Time at;
    const Hold* hold;
  };
  explicit EarliestAbove(std::vector<Item> items);
  const Item* find(std::uint64_t key) const;  // nullptr: no such item

 private:
  std::vector<Item> items_;            // sorted by key
  std::vector<std::size_t> earliest_;  // index of the earliest of items_[i] and all behind it
};

}  // namespace baton::chaos
