#include "interop/history.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

namespace baton::interop {
namespace {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

std::string text_of(const Turn& turn) {
  std::ostringstream text;
  text << turn.who << "'s turn " << turn.number << " (token " << turn.token << ", entry "
       << turn.entry << ", called " << turn.call << ", joined " << turn.joined << ", held "
       << turn.granted << " to " << turn.released << ")";
  return text.str();
}

// The number at the end of an entry's name; nullopt: the name is not known.
std::optional<long> sequence_of(const std::string& entry) {
  const auto end = entry.find_last_not_of("0123456789");
  if (end == entry.npos || end + 1 == entry.size()) return std::nullopt;
  return std::stol(entry.substr(end + 1));
}

// The time in which all contend: from when each had its first turn to when the first had its last.
struct Window {
  std::int64_t from = 0;
  std::int64_t to = std::numeric_limits<std::int64_t>::max();
};

Window window_of(const std::vector<Turn>& turns) {
  std::map<std::string, Window> of;
  for (const Turn& turn : turns) {
    of.try_emplace(turn.who, Window{turn.granted, 0}).first->second.to = turn.released;
  }
  Window all;
  for (const auto& [who, one] : of) {
    all.from = std::max(all.from, one.from);
    all.to = std::min(all.to, one.to);
  }
  return all;
}

}  // namespace

History::History(std::vector<Turn> turns) : turns_(std::move(turns)) {
  std::sort(turns_.begin(), turns_.end(),
            [](const Turn& a, const Turn& b) { return a.granted < b.granted; });
}

History History::from_file(const std::string& path) {
  std::vector<Turn> turns;
  std::ifstream file(path);
  for (Turn t; file >> t.who >> t.number >> t.call >> t.joined >> t.granted >> t.released >>
               t.token >> t.entry;) {
    turns.push_back(t);
  }
  return History(std::move(turns));
}

AssertionResult History::complete(const std::vector<std::string>& who, int turns) const {
  std::map<std::string, int> last;
  for (const auto& name : who) last[name] = 0;
  for (const Turn& turn : turns_) {
    const auto found = last.find(turn.who);
    if (found == last.end()) return AssertionFailure() << "a stranger: " << text_of(turn);
    if (turn.number != ++found->second) {
      return AssertionFailure() << text_of(turn) << " came when turn " << found->second
                                << " was due";
    }
  }
  for (const auto& [name, count] : last) {
    if (count != turns) {
      return AssertionFailure() << name << " had " << count << " turns, not " << turns;
    }
  }
  return AssertionSuccess();
}

AssertionResult History::exclusive() const {
  for (std::size_t i = 1; i < turns_.size(); ++i) {
    if (turns_[i].granted < turns_[i - 1].released) {
      return AssertionFailure() << overlaps() << " of " << turns_.size()
                                << " holds overlap; the first: " << text_of(turns_[i - 1])
                                << " and " << text_of(turns_[i]);
    }
  }
  return AssertionSuccess();
}

std::size_t History::overlaps() const {
  std::size_t count = 0;
  std::int64_t busy_until = 0;
  for (const Turn& turn : turns_) {
    if (turn.granted < busy_until) ++count;
    busy_until = std::max(busy_until, turn.released);
  }
  return count;
}

AssertionResult History::in_order_of_arrival() const {
  const Turn* before = nullptr;
  const Turn* before_with_name = nullptr;
  for (const Turn& turn : turns_) {
    if (turn.token == 0) return AssertionFailure() << "no token: " << text_of(turn);
    if (before != nullptr && turn.token <= before->token) {
      return AssertionFailure() << text_of(turn) << " was granted after " << text_of(*before);
    }
    before = &turn;
    const auto sequence = sequence_of(turn.entry);
    if (!sequence) continue;
    if (before_with_name != nullptr && *sequence <= *sequence_of(before_with_name->entry)) {
      return AssertionFailure() << text_of(turn) << " was granted after "
                                << text_of(*before_with_name);
    }
    before_with_name = &turn;
  }
  return AssertionSuccess();
}

AssertionResult History::nobody_is_overtaken() const {
  for (std::size_t i = 0; i < turns_.size(); ++i) {
    const Turn& waiter = turns_[i];
    if (waiter.joined == 0) continue;
    std::set<std::string> served;
    for (std::size_t j = i; j-- > 0 && turns_[j].granted > waiter.joined;) {
      if (!served.insert(turns_[j].who).second) {
        return AssertionFailure() << turns_[j].who
                                  << " had two turns while one waited: " << text_of(waiter)
                                  << "; the earlier is " << text_of(turns_[j]);
      }
    }
  }
  return AssertionSuccess();
}

std::map<int, int> History::gaps() const {
  const Window window = window_of(turns_);
  std::map<std::string, std::map<std::string, int>> since;  // [x][y]: turns of y since x's last
  std::set<std::string> everybody;
  for (const Turn& turn : turns_) everybody.insert(turn.who);
  std::map<int, int> found;
  for (const Turn& turn : turns_) {
    if (turn.granted < window.from || turn.released > window.to) continue;
    const auto own = since.find(turn.who);
    if (own != since.end()) {
      for (const auto& other : everybody) {
        if (other != turn.who) ++found[own->second[other]];
      }
    }
    since[turn.who].clear();
    for (auto& [who, seen] : since) ++seen[turn.who];
  }
  return found;
}

// In a fair queue of N that all join again at once, each other has exactly one turn between two
// turns of X, so N - 1 in all. Two facts soften it:
// - The order of joining again is not the order of releasing: Y may join late in one round and
//   early in the next. While X waits Y still has at most one turn (nobody_is_overtaken), but the
//   rounds of X and Y shift against each other, so 0 and 2 are right, too.
// - Between its release and its next entry X is not in the queue, and nobody waits for it. A slow
//   X (a collecting JVM, a process without a processor) misses whole rounds: any number is right.
// So the exact checks are the other two; here we bound how often X misses a round. More than two
// turns of another must be rare, and nobody may have less than half of an even share.
AssertionResult History::evenly_shared() const {
  constexpr double kRare = 0.02;
  constexpr int kFew = 5;
  int all = 0;
  int wide = 0;
  for (const auto& [turns, count] : gaps()) {
    all += count;
    if (turns > 2) wide += count;
  }
  if (all == 0) return AssertionFailure() << "there was no time in which all contended";
  if (wide > kFew && wide > all * kRare) {
    return AssertionFailure() << "in " << wide << " of " << all
                              << " cases one had more than 2 turns between two turns of another: "
                              << summary();
  }
  const Window window = window_of(turns_);
  std::map<std::string, std::size_t> share;
  std::size_t total = 0;
  for (const Turn& turn : turns_) {
    auto& own = share[turn.who];
    if (turn.granted < window.from || turn.released > window.to) continue;
    ++own;
    ++total;
  }
  for (const auto& [who, own] : share) {
    if (own * share.size() * 2 < total) {
      return AssertionFailure() << who << " had " << own << " of " << total
                                << " turns while all contended: " << summary();
    }
  }
  return AssertionSuccess();
}

std::string History::longest_absence() const {
  const Window window = window_of(turns_);
  std::map<std::string, std::size_t> last;  // index of the latest turn
  std::size_t widest = 0;
  std::size_t from = 0;
  std::size_t to = 0;
  for (std::size_t i = 0; i < turns_.size(); ++i) {
    if (turns_[i].granted < window.from || turns_[i].released > window.to) continue;
    const auto [own, first] = last.try_emplace(turns_[i].who, i);
    if (!first && i - own->second > widest) {
      widest = i - own->second;
      from = own->second;
      to = i;
    }
    own->second = i;
  }
  if (widest == 0) return "nobody had two turns";
  const Turn& late = turns_[to];
  // The entry before it in the queue was made after its maker's call, and ours after that.
  std::int64_t joined_after = late.call;
  std::uint64_t before = 0;
  for (const Turn& turn : turns_) {
    if (turn.token >= late.token || turn.token < before) continue;
    before = turn.token;
    joined_after = std::max(late.call, turn.call);
  }
  const auto ms = [](std::int64_t ns) { return static_cast<double>(ns) / 1e6; };
  std::ostringstream text;
  text.precision(3);
  text << late.who << " before its turn " << late.number << ": " << widest - 1
       << " turns of others; " << ms(late.call - turns_[from].released)
       << " ms from release to call, " << ms(joined_after - late.call)
       << " ms or more from call to entry, " << ms(late.granted - late.call)
       << " ms from call to grant";
  return text.str();
}

std::string History::summary() const {
  const Window window = window_of(turns_);
  std::map<std::string, int> share;
  std::size_t contended = 0;
  std::size_t joined = 0;
  for (const Turn& turn : turns_) {
    if (turn.joined != 0) ++joined;
    if (turn.granted < window.from || turn.released > window.to) continue;
    ++contended;
    ++share[turn.who];
  }
  const double seconds =
      turns_.empty() ? 0 : static_cast<double>(turns_.back().released - turns_.front().call) / 1e9;
  std::ostringstream text;
  text.precision(3);
  text << turns_.size() << " turns in " << seconds << " s, " << contended
       << " while all contended (";
  const char* separator = "";
  for (const auto& [who, own] : share) {
    text << separator << who << " " << own;
    separator = ", ";
  }
  text << "), " << overlaps() << " overlaps, " << joined
       << " with a known time of joining; turns of another between two of one:";
  for (const auto& [turns, count] : gaps()) text << " " << turns << " x" << count;
  text << "; the longest absence: " << longest_absence();
  return text.str();
}

}  // namespace baton::interop
