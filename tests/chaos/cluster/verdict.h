// Judges the histories of a run. Each checker objects only to what the records alone prove wrong.
// The delay between an event and its record does not matter: the time `at` of a record errs on the
// safe side (history.h says which side that is), and so do the checkers.
//
// overlap    Two holds of one lock must not be valid at the same time. A hold is proven valid from
//            its first `valid` to its last: loss is final, so the hold was valid all the time
//            between. When an operator has begun to evict an entry (A3), its hold may be valid
//            beside others, but no longer than 1 s after the entry was seen gone, or than the
//            deadline that the holder had then.
// tokens     Sort the grants of a lock by the first moment at which each is proven valid: the
//            tokens must rise strictly. No token may be granted twice. The time of `granted` proves
//            no order: the process may have been stopped between the grant and the record. Excused
//            are holds whose entry was evicted or seen gone before the hold was first proven valid
//            (docs/guarantees.md, G3). If it was gone without an eviction, early-loss objects.
// fifo       Tokens give the order of the entries. No hold may be valid while an entry with a
//            smaller token is in the store. If the observer sees that older entry later, it was
//            there all the time. A second check uses the clock instead of tokens: if client B asks
//            after the entry of client A was seen in the queue, B must not be valid before A.
// progress   After `calm`, every lock that is wanted is granted within a bound, and every acquire
//            returns within it. Always: a call with a timeout returns in time, not counting the
//            time in which its process was stopped, and no acquire fails except by timeout or
//            cancellation.
// leaks      Nothing is left in the store. At its end a process has no more descriptors and threads
//            than before its first acquire, within a slack. Its memory does not grow over a long
//            life.
// early-loss No hold is valid after its entry was seen gone. In addition, each `valid` record names
//            a deadline: the holder believes in its lock until then, even if it receives nothing
//            more. The store must not free the lock before that deadline (entry seen gone, or a
//            later entry granted), whether the holder runs, is stopped or was killed: G4 rests on
//            the holder's clock. Evicted holds are exempt. The deadline no longer counts after the
//            owner's own release, or after a loss that the client itself decided on. It still
//            counts if the store reported that the session or the entry had ended: that report
//            proves that the deadline was too late.
// revival    No hold is valid after it was lost or not valid. If valid() turns false while the
//            owner keeps the lock, lost_token() fires soon.
// register   Each lock protects a number. A holder reads the number and writes the next one, with
//            its token. The accepted numbers of a lock are all different (two equal numbers are a
//            lost update) and have no gaps, except for writes of a killed process that had no time
//            to record them. Tokens rise with the numbers. A hold whose write was refused must not
//            be valid afterwards, unless its entry was evicted; this violation counts as overlap.
// form       The histories can be judged: lines are whole, except for the last line of a killed
//            process; calls are in order; all records of one hold have one lock and token; no
//            process has a record after its end; at least one lock was granted.
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

// A known bug of a store that breaks a promise and that no client can prevent. An allowance relaxes
// one checker, from the moment a fault is undone until the time `after` has passed since it was
// healed. It applies only if the server itself proves the bug (Kind::expired: at most as many
// clients are excused as it ended leases), and only to holds whose entry the store may have
// removed: never to a hold whose release the store confirmed.
struct Allowance {
  std::string_view store;  // prefix of JudgeOptions::store
  std::string_view issue;
  Checker checker;
  // Prefix of the fault's text. Empty: the fault is a server that has lost committed data, as the
  // server itself reports (Astray) or as the readings prove (Hole). Then only holds are excused
  // whose client was told that its entry is missing.
  std::string_view fault;
  std::chrono::milliseconds after;
};
const std::vector<Allowance>& known_bugs();  // defined in allowances.cpp

struct JudgeOptions {
  std::string store;           // "zk 3.8.0", "etcd 3.4.23"
  std::vector<Damage> damage;  // from read_histories
  std::chrono::milliseconds progress_bound{20'000};
  std::chrono::milliseconds call_slack{1'000};   // allowed beyond a timeout: the machine is busy
  std::chrono::milliseconds evict_slack{1'000};  // allowed beyond the promised second
  std::uint64_t descriptor_slack = 8;
  // gRPC has four pools whose threads grow with the work that is to be done at one time: executors,
  // resolvers, its event engine and its timers. Each grows to about two threads a processor and
  // never shrinks. A thread that leaked with every acquire would add hundreds.
  std::uint64_t thread_slack = 12;
  std::chrono::milliseconds growth_after{60'000};  // memory is judged only in lives this long
  std::size_t list = 5;                            // violations in words, for each checker
  std::vector<Allowance> allowances = known_bugs();
};

struct Findings {
  std::size_t judged = 0;  // number of judged events: a checker that judged nothing proves nothing
  std::size_t violations = 0;
  std::size_t excused = 0;         // by an allowance; not counted in `violations`
  std::vector<std::string> first;  // the first violations and excused events, in words
};

struct Sample {
  std::chrono::nanoseconds at{};
  std::chrono::nanoseconds value{};
  bool after_loss = false;
};

struct Verdict {
  std::array<Findings, kCheckers> findings;
  std::size_t grants = 0;
  // From release, loss or kill of a holder to the next grant, if the next holder already waited.
  std::vector<Sample> handovers;
  // From the moment at which a holder stopped believing in its lock (loss or deadline) to the first
  // sign that the store had freed the lock.
  std::vector<Sample> margins;

  const Findings& of(Checker checker) const { return findings[static_cast<std::size_t>(checker)]; }
  bool ok() const;
  void print(std::FILE* out) const;
};

// The records must be sorted by time, as read_histories returns them.
Verdict judge(const std::vector<Record>& records, const JudgeOptions& options = {});

}  // namespace baton::chaos
