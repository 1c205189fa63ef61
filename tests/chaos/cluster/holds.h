// The records of a run, put together: who held what, what the store showed, who lived when.
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

// One acquire and what became of it. A record of tests/history has one beginning and one end; here
// each checker chooses, from the moments that are proven, those that it may rely on.
struct Hold {
  std::uint32_t client = 0;
  std::uint32_t lock = 0;
  std::uint64_t op = 0;
  std::uint64_t token = 0;
  Moment asked, answer_due, granted, gave_up, first_valid, last_valid, invalid, lost;
  Moment release, release_due, released;  // released: the call has returned, or thrown
  bool confirmed = false;                 // returned: the store had the entry until then
  Time until{};                           // the latest deadline it ever named
  Moment revived;                         // told of a held lock after it was lost
  std::uint64_t code = 0;                 // why it was lost, or given up
};

// What the observer saw of one entry.
struct Entry {
  Moment seen;     // certainly in line from here on
  Moment present;  // was there, not before this moment
  Moment gone;     // was not there any more
  Moment evicted;  // somebody began to remove it
  bool foreign = false;

  // A reading without it, the last one before that, and the next one that shows it again.
  Moment first_gone, before_gone, back;
};

// Entries whose owners had let go of them, and that had been seen gone, are there again, several in
// one reading, or one while a server is known to be astray: a server has lost what was committed.
// It may have been wrong from the first of them being seen gone until that reading.
struct Hole {
  Time from{}, to{};
  std::size_t entries = 0;
};

// A server that had not what was committed, by its own word.
struct Astray {
  std::uint64_t server = 0;
  Time from{}, known{}, to{};
};

struct Life {
  Moment start, stop, killed;
  std::vector<std::pair<Time, Time>> pauses;
  // Of [from, to], how much the process was stopped.
  Time paused_between(Time from, Time to) const;
};

struct Index {
  // servers_may_forget: a store whose servers have a bug that makes holes.
  explicit Index(const std::vector<Record>& records, bool servers_may_forget = false);

  std::vector<Hold> holds;  // in the order in which they were asked for
  // Those proven valid at least once, by lock: numbers in `holds`, by the first proof.
  std::map<std::uint32_t, std::vector<std::size_t>> grants;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Entry> entries;  // by lock and token
  std::map<std::uint32_t, Life> lives;
  std::vector<Hole> holes;
  std::vector<Astray> astray;
  Time begin{}, end{};
  Moment calm;

  const Entry* entry(const Hold& hold) const;
  const Astray* astray_at(Time at) const;  // nullptr: no server was, as far as is known
  Moment evicted(const Hold& hold) const;
  // For the checkers of tests/history: each record's number is that in `holds`. It lasts from the
  // first proof to just after the last, but no longer than until an eviction began.
  history::Holds proven(const std::vector<std::size_t>& numbers) const;
  const Life& life(std::uint32_t client) const;
  std::string when(Time at) const;  // "at 12.345 s" since the beginning
  std::string who(const Hold& hold) const;

 private:
  void find_holes();
};

// Collects what the checkers object to.
class Bench {
 public:
  Bench(const std::vector<Record>& records, const Index& index, const JudgeOptions& options,
        Verdict& verdict);
  void judged(Checker checker, std::size_t count = 1);
  // bereft: who could be excused, if a bug of the store has taken its entry away. An entry that the
  // store still had when its owner released it was not taken.
  void object(Checker checker, Time at, const std::string& words, const Hold* bereft = nullptr);

  void excuse(Checker checker, std::string_view issue, const std::string& words);
  // A server showed wrong data at this moment, and that is allowed to it.
  bool may_forget(Time at) const;

  const std::vector<Record>& records;
  const Index& index;
  const JudgeOptions& options;
  Verdict& verdict;

 private:
  struct Window {
    const Allowance* allowance;
    Time from, to;
    std::uint64_t clients;  // so many may be excused, by all checkers together
    std::shared_ptr<std::set<std::uint32_t>> excused = std::make_shared<std::set<std::uint32_t>>();
  };
  std::vector<Window> windows_;
};

void check_form(Bench& bench);
void check_overlap(Bench& bench);
void check_evictions(Bench& bench);  // objects as overlap
void check_revival(Bench& bench);
void check_tokens(Bench& bench);
void check_fifo(Bench& bench);
void check_progress(Bench& bench);
void check_leaks(Bench& bench);
void check_early_loss(Bench& bench);  // and collects margins
void check_register(Bench& bench);
void collect_handovers(Bench& bench);

std::string in_ms(Time duration);    // "12.3 ms"
Moment earlier(Moment a, Moment b);  // of those that are known

// Of all items with a greater key, the earliest.
class EarliestAbove {
 public:
  struct Item {
    std::uint64_t key;
    Time at;
    const Hold* hold;
  };
  explicit EarliestAbove(std::vector<Item> items);
  const Item* find(std::uint64_t key) const;  // nullptr: there is none

 private:
  std::vector<Item> items_;            // by key
  std::vector<std::size_t> earliest_;  // of items_[i] and all behind
};

}  // namespace baton::chaos
