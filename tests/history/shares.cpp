#include "history/shares.h"

#include <algorithm>
#include <map>
#include <sstream>

namespace baton::history {
namespace {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

// How the holds were shared while all contended. This time begins when every contender has been
// granted its first turn. It ends when the first contender has ended its last turn.
struct Shares {
  Holds holds;                              // of that time only, in the order of grants
  std::map<std::string, std::size_t> each;  // all contenders
  // Turns of one contender between two turns of another: how often each number occurred.
  std::map<std::size_t, std::size_t> gaps;
};

Shares shares_of(Holds holds) {
  std::ranges::sort(holds, {}, &Hold::granted);
  struct Span {
    Time from, to;
  };
  std::map<std::string, Span> spans;
  for (const Hold& hold : holds) {
    spans.try_emplace(hold.who, Span{hold.granted, {}}).first->second.to = hold.left;
  }
  Shares all;
  Span window{Time::min(), Time::max()};
  for (const auto& [who, span] : spans) {
    all.each[who] = 0;
    window = {std::max(window.from, span.from), std::min(window.to, span.to)};
  }
  // [x][y]: turns of y since x's last turn
  std::map<std::string, std::map<std::string, std::size_t>> since;
  for (const Hold& hold : holds) {
    if (hold.granted < window.from || hold.left > window.to) continue;
    all.holds.push_back(hold);
    ++all.each[hold.who];
    if (const auto own = since.find(hold.who); own != since.end()) {
      for (const auto& [other, unused] : spans) {
        if (other != hold.who) ++all.gaps[own->second[other]];
      }
    }
    since[hold.who].clear();
    for (auto& [who, seen] : since) ++seen[hold.who];
  }
  return all;
}

double ms(Time time) { return std::chrono::duration<double, std::milli>(time).count(); }

// Finds the contender that missed the most turns of others between two of its own turns, and
// reports how this time was spent.
std::string longest_absence(const Holds& holds) {
  std::map<std::string, std::size_t> last;  // index of the latest turn
  std::size_t widest = 0;
  std::size_t to = 0;
  for (std::size_t i = 0; i < holds.size(); ++i) {
    const auto [own, first] = last.try_emplace(holds[i].who, i);
    if (!first && i - own->second > widest) {
      widest = i - own->second;
      to = i;
    }
    own->second = i;
  }
  if (widest == 0) return "nobody had two turns";
  const Hold& late = holds[to];
  std::ostringstream text;
  text.precision(3);
  text << late.who << " before its turn " << late.number << ": " << widest - 1
       << " turns of others; " << ms(late.asked - holds[to - widest].left)
       << " ms from release to call, " << ms(late.granted - late.asked) << " ms from call to grant";
  return text.str();
}

}  // namespace

AssertionResult complete(const Holds& holds, const std::vector<std::string>& who,
                         std::uint64_t turns) {
  std::map<std::string, std::vector<Hold>> of;
  for (const auto& name : who) of[name] = {};
  for (const Hold& hold : holds) {
    if (!of.contains(hold.who)) return AssertionFailure() << "a stranger: " << hold.who;
    of[hold.who].push_back(hold);
  }
  for (auto& [name, own] : of) {
    std::ranges::sort(own, {}, &Hold::granted);
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (own[i].number == i + 1) continue;
      return AssertionFailure() << name << " had turn " << own[i].number << " when turn " << i + 1
                                << " was due";
    }
    if (own.size() == turns) continue;
    return AssertionFailure() << name << " had " << own.size() << " turns, not " << turns;
  }
  return AssertionSuccess();
}

// In a fair queue of N contenders that all join again at once, each other contender has exactly one
// turn between two turns of X, so N - 1 in all. Two facts weaken this rule:
// - Contenders do not always join again in the order of their releases: Y may join late in one
//   round and early in the next. While X waits, Y still has at most one turn (overtaken() checks
//   it). But the rounds of X and Y shift against each other, so 0 and 2 turns are also correct.
// - Between its release and its next entry X is not in the queue, and no contender waits for it. A
//   slow X (garbage collection in a JVM, a process that gets no processor time) misses whole
//   rounds, so any number is correct.
// The exact checks are therefore those of order. This check bounds how often X misses a round: more
// than two turns of another contender must be rare, and each contender must have at least half of
// an even share.
AssertionResult evenly_shared(const Holds& holds) {
  constexpr double kRare = 0.02;
  constexpr std::size_t kFew = 5;
  const Shares shares = shares_of(holds);
  std::size_t all = 0;
  std::size_t wide = 0;
  for (const auto& [turns, count] : shares.gaps) {
    all += count;
    if (turns > 2) wide += count;
  }
  if (all == 0) return AssertionFailure() << "there was no time in which all contended";
  if (wide > kFew && static_cast<double>(wide) > static_cast<double>(all) * kRare) {
    return AssertionFailure() << "in " << wide << " of " << all
                              << " cases one had more than 2 turns between two turns of another: "
                              << summary(holds);
  }
  for (const auto& [who, own] : shares.each) {
    if (own * shares.each.size() * 2 >= shares.holds.size()) continue;
    return AssertionFailure() << who << " had " << own << " of " << shares.holds.size()
                              << " turns while all contended: " << summary(holds);
  }
  return AssertionSuccess();
}

std::string summary(const Holds& holds) {
  const Shares shares = shares_of(holds);
  Time begin = Time::max();
  Time end{};
  std::size_t joined = 0;
  for (const Hold& hold : holds) {
    begin = std::min(begin, hold.asked);
    end = std::max(end, hold.left);
    if (hold.joined != Time{}) ++joined;
  }
  std::ostringstream text;
  text.precision(3);
  text << holds.size() << " turns in " << (holds.empty() ? 0 : ms(end - begin) / 1000) << " s, "
       << shares.holds.size() << " while all contended (";
  const char* separator = "";
  for (const auto& [who, own] : shares.each) {
    text << separator << who << " " << own;
    separator = ", ";
  }
  text << "), " << overlaps(holds).size() << " overlaps, " << joined
       << " with a known time of joining; turns of another between two of one:";
  for (const auto& [turns, count] : shares.gaps) text << " " << turns << " x" << count;
  text << "; the longest absence: " << longest_absence(shares.holds);
  return text.str();
}

}  // namespace baton::history
