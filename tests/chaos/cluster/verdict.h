// The verdict over the histories of a run. Each checker objects to what it can prove wrong from the
// records alone, whatever delays lie between an event and the record of it: a record's `at` is on
// the safe side of the event (history.h says which), and the checkers lean the same way.
//
// overlap    A hold is proven valid from its first `valid` to its last: loss is final, so it was
//            valid all the time between. Two such times of one lock must not meet. An eviction
//            takes the promise from the evicted hold alone, from the moment the operator began
//            (A3): from then on it may be valid beside others, but no longer than 1 s after its
//            entry was seen gone, or than the deadline it had then.
// tokens     Grants of a lock, by the first moment at which they are proven valid, have strictly
//            rising tokens, and no token is granted twice. `granted` proves no order: the process
//            may have been stopped between the grant and the record. Excused: a hold whose entry
//            was evicted before it was first proven valid (docs/guarantees.md, on G3), or was seen
//            gone before: that is early-loss's case, and it objects.
// fifo       Tokens are the order of the entries. Nobody is valid while an entry with a smaller
//            token is still seen in the store afterwards: an older entry that is there later was
//            there all the time. And a witness by the clock, without the tokens' word: who asked
//            after another's entry had been seen in line is not served before that other.
// progress   After `calm`, every lock that is wanted is granted within a bound, and whoever asks is
//            answered within it. Always: a call with a timeout keeps it, not counting the time in
//            which its process was stopped; nobody gives up for a reason that is not its own.
// leaks      Nothing is left in the store; descriptors and threads at the end of a process are
//            those after its first acquire; memory does not grow over a long life.
// early-loss Nobody is valid after its entry was seen gone. And sharper: each `valid` names a
//            deadline up to which the holder would have believed had it heard nothing more. So the
//            store must not free the lock before (entry seen gone, or a later entry granted),
//            whether the holder lives, is stopped or was killed: its clock is what G4 rests on. Not
//            for the evicted; and a claim ends with the owner's own release, or with a loss that
//            the client itself decided on. That the session or entry had ended in the store is no
//            such loss, but the store's word that the deadline was too late.
// revival    No lock is valid after it was lost or not valid.
// register   Under each lock stands a number; a holder reads it and writes the next, with its
//            token. Accepted numbers of a lock are all different (two of the same: a lost update)
//            and without gaps, but for writes of a killed process which it had no time to record;
//            tokens rise with them; who is valid afterwards was not refused.
// form       What a history must be to be judged at all: whole lines, but for the last of a killed
//            process; calls in order; records of one hold with one lock and token.
#pragma once

#include "chaos/cluster/history.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::chaos {

enum class Checker { form, overlap, tokens, fifo, progress, leaks, early_loss, revival, reg };
inline constexpr std::size_t kCheckers = 9;
std::string_view name_of(Checker checker);  // "early-loss", "register", ...
std::optional<Checker> checker_of(std::string_view name);

// A known bug of a store that breaks a promise for which the client can do nothing. One relaxes one
// checker, from when a fault is undone until some time after it is healed, only if the server
// itself has shown the bug (Kind::expired, for as many clients as it ended leases), and only for
// holds whose entry the store may have taken away: never for one that was released to the store's
// satisfaction.
struct Allowance {
  std::string_view store;  // how JudgeOptions::store begins
  std::string_view issue;
  Checker checker;
  std::string_view fault;  // how the fault's text begins; "": a server that has lost what was
                           // committed, by its own word (Astray), or as the
                           // readings themselves prove (Hole). Only for those whom it
                           // told that their entry is not there
  std::chrono::milliseconds after;
};
const std::vector<Allowance>& known_bugs();  // allowances.cpp has all of them

struct JudgeOptions {
  std::string store;           // "zk 3.8.0", "etcd 3.4.23"
  std::vector<Damage> damage;  // from read_histories
  std::chrono::milliseconds progress_bound{20'000};
  std::chrono::milliseconds call_slack{1'000};   // beyond a timeout; the machine is busy
  std::chrono::milliseconds evict_slack{1'000};  // beyond the promised second
  std::uint64_t descriptor_slack = 8;
  // gRPC has four pools that grow with what is to be done at once, each to about two threads a
  // processor, and never shrink: executors, resolvers, its event engine, its timers. What leaks
  // with every acquire is hundreds.
  std::uint64_t thread_slack = 12;
  std::chrono::milliseconds growth_after{60'000};  // memory is judged after a life this long
  std::size_t list = 5;                            // violations put in words, for each checker
  std::vector<Allowance> allowances = known_bugs();
};

struct Findings {
  std::size_t judged = 0;  // how much there was to judge: a checker that saw nothing proves nothing
  std::size_t violations = 0;
  std::size_t excused = 0;         // by an allowance; not among the violations
  std::vector<std::string> first;  // violations in words, and what was excused, with the issue
};

struct Sample {
  std::chrono::nanoseconds at{};
  std::chrono::nanoseconds value{};
  bool after_loss = false;
};

struct Verdict {
  std::array<Findings, kCheckers> findings;
  std::size_t grants = 0;
  // From release or loss to the next grant, of those who waited already.
  std::vector<Sample> handovers;
  // From the end of a holder's belief (loss, or the deadline of one who was killed) to the first
  // sign that the store had freed the lock.
  std::vector<Sample> margins;

  const Findings& of(Checker checker) const { return findings[static_cast<std::size_t>(checker)]; }
  bool ok() const;  // no violations
  void print(std::FILE* out) const;
};

// The records sorted by time, as read_histories gives them.
Verdict judge(const std::vector<Record>& records, const JudgeOptions& options = {});

}  // namespace baton::chaos
