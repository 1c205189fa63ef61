// Checks that all clients continue after the faults, and that calls always keep their timeouts.
#include "chaos/cluster/holds.h"

#include <baton/error.h>

#include <algorithm>

namespace baton::chaos {
namespace {

// Checks that a call with a timeout returns in time.
void check_call(Bench& bench, const Hold& hold, const char* what, Time from, Moment due,
                Moment back) {
  if (!due || !back) return;
  const Index& index = bench.index;
  bench.judged(Checker::progress);
  const Time stopped = index.life(hold.client).paused_between(from, *back);
  const Time late = *back - *due - stopped - bench.options.call_slack;
  if (late <= Time{}) return;
  bench.object(Checker::progress, *back,
               index.who(hold) + ": " + what + " called " + index.when(from) +
                   " with a timeout of " + in_ms(*due - from) + " returned " + in_ms(*back - *due) +
                   " late");
}

void check_calls(Bench& bench) {
  const Index& index = bench.index;
  for (const Hold& hold : index.holds) {
    if (!hold.asked) continue;
    check_call(bench, hold, "acquire", *hold.asked, hold.answer_due,
               earlier(hold.granted, hold.gave_up));
    if (hold.release) {
      check_call(bench, hold, "release", *hold.release, hold.release_due, hold.released);
    }
    if (hold.gave_up && hold.code != static_cast<std::uint64_t>(Errc::timeout) &&
        hold.code != static_cast<std::uint64_t>(Errc::cancelled)) {
      bench.object(Checker::progress, *hold.gave_up,
                   index.who(hold) + " gave up " + index.when(*hold.gave_up) +
                       " for a reason that is not its own: " +
                       make_error_code(static_cast<Errc>(hold.code)).message());
    }
  }
}

// Every acquire that has not returned when the faults end, or begins later, returns within the
// bound, unless its process is killed while it waits.
void check_answers(Bench& bench, Time calm) {
  const Index& index = bench.index;
  for (const Hold& hold : index.holds) {
    if (!hold.asked) continue;
    const Moment back = earlier(hold.granted, hold.gave_up);
    if (back && *back < calm) continue;
    bench.judged(Checker::progress);
    const Moment killed = index.life(hold.client).killed;
    const Time until = back ? *back : killed.value_or(index.end);
    const bool in_time = until - std::max(*hold.asked, calm) <= bench.options.progress_bound;
    if (in_time && (back || killed)) continue;
    bench.object(Checker::progress, until,
                 index.who(hold) + " asked " + index.when(*hold.asked) +
                     (back ? " and was answered only " : " and had no answer ") +
                     index.when(until) + "; the last fault was over " + index.when(calm));
  }
}

}  // namespace

void check_progress(Bench& bench) {
  const Index& index = bench.index;
  check_calls(bench);
  if (!index.calm) return;
  const Time calm = *index.calm;
  check_answers(bench, calm);

  struct Wanted {
    Moment since, granted;
  };
  std::map<std::uint32_t, Wanted> locks;
  for (const Hold& hold : index.holds) {
    if (!hold.asked) continue;
    Wanted& lock = locks[hold.lock];
    const Moment back = earlier(hold.granted, hold.gave_up);
    const bool waiting = !back || *back >= calm;  // waiting at `calm`, or asked after it
    if (waiting && !index.life(hold.client).killed) {
      lock.since = earlier(lock.since, std::max(calm, *hold.asked));
    }
    if (hold.granted && *hold.granted >= calm) lock.granted = earlier(lock.granted, hold.granted);
  }
  for (const auto& [number, lock] : locks) {
    bench.judged(Checker::progress);
    const std::string name = "lock " + std::to_string(number);
    if (!lock.since) {
      bench.object(Checker::progress, calm, name + " was asked for by nobody after the faults");
    } else if (!lock.granted) {
      bench.object(Checker::progress, index.end,
                   name + " was never granted after the last fault, " + index.when(calm));
    } else if (*lock.granted - *lock.since > bench.options.progress_bound) {
      bench.object(Checker::progress, *lock.granted,
                   name + " was wanted " + index.when(*lock.since) +
                       ", after the last fault, and " + "granted only " +
                       index.when(*lock.granted));
    }
  }
}

}  // namespace baton::chaos
