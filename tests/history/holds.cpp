#include "history/holds.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <utility>

namespace baton::history {
namespace {

std::vector<const Hold*> by_grant(const Holds& holds) {
  std::vector<const Hold*> sorted;
  for (const Hold& hold : holds) sorted.push_back(&hold);
  std::ranges::stable_sort(sorted, {}, &Hold::granted);
  return sorted;
}

// Pairs each hold with the earliest grant before it that conflicts with it. For each hold,
// `conflicting` must be true for all earlier keys above some limit, and false for all others.
template <class Key, class Conflicting>
Conflicts earliest_before(const Holds& holds, Key key, Conflicting conflicting) {
  static const Hold kNone;
  std::vector<const Hold*> rising{&kNone};  // grants whose key is greater than all keys before
  Conflicts found;
  for (const Hold* hold : by_grant(holds)) {
    const auto first = std::partition_point(rising.begin(), rising.end(), [&](const Hold* earlier) {
      return !conflicting(*earlier, *hold);
    });
    if (first != rising.end()) found.push_back({*first, hold});
    if (hold->*key > rising.back()->*key) rising.push_back(hold);
  }
  return found;
}

// Returns the number at the end of the name of an entry, or nullopt if there is none.
std::optional<std::uint64_t> sequence_of(const std::string& entry) {
  const auto end = entry.find_last_not_of("0123456789");
  if (end == entry.npos || end + 1 == entry.size()) return std::nullopt;
  return std::stoull(entry.substr(end + 1));
}

void print(std::ostream& out, const Hold& hold, Time origin) {
  const auto ms = [origin](Time time) {
    return std::chrono::duration<double, std::milli>(time - origin).count();
  };
  out << (hold.who.empty() ? "hold" : hold.who) << " " << hold.number << " (token " << hold.token;
  if (!hold.entry.empty()) out << ", entry " << hold.entry;
  if (hold.asked != Time{}) out << ", asked " << ms(hold.asked);
  if (hold.joined != Time{}) out << ", in the queue " << ms(hold.joined);
  out << ", held " << ms(hold.granted) << " to " << ms(hold.left) << " ms";
  if (hold.ending == Ending::lost) out << ", lost";
  if (hold.ending == Ending::killed) out << ", killed";
  out << ")";
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Conflict& conflict) {
  const Time origin = conflict.earlier->granted;
  print(out, *conflict.earlier, origin);
  print(out << ", then ", *conflict.later, origin);
  return out;
}

Conflicts overlaps(const Holds& holds) {
  std::vector<const Hold*> open;
  Conflicts found;
  for (const Hold* hold : by_grant(holds)) {
    std::erase_if(open, [&](const Hold* earlier) { return earlier->left <= hold->granted; });
    for (const Hold* earlier : open) found.push_back({earlier, hold});
    open.push_back(hold);
  }
  return found;
}

Conflicts inversions(const Holds& holds) {
  return earliest_before(holds, &Hold::token, [](const Hold& earlier, const Hold& hold) {
    return earlier.token >= hold.token;
  });
}

Conflicts overtaken(const Holds& holds) {
  return earliest_before(holds, &Hold::asked, [](const Hold& earlier, const Hold& hold) {
    return hold.joined != Time{} && earlier.asked > hold.joined;
  });
}

Conflicts conflicts(const Holds& holds) {
  auto found = overlaps(holds);
  const auto more = inversions(holds);
  found.insert(found.end(), more.begin(), more.end());
  return found;
}

::testing::AssertionResult none(const Conflicts& found) {
  if (found.empty()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << found.size() << " conflicts; the first: " << found[0];
}

::testing::AssertionResult exclusive_and_ordered(const Holds& holds) {
  return none(conflicts(holds));
}

::testing::AssertionResult in_order_of_arrival(const Holds& holds) {
  Holds numbered;
  for (const Hold& hold : holds) {
    const auto sequence = sequence_of(hold.entry);
    if (!sequence) continue;
    numbered.push_back(hold);
    numbered.back().token = *sequence + 1;  // numbers may begin at 0, tokens do not
  }
  const auto by_token = none(inversions(holds));
  return by_token ? none(inversions(numbered)) : by_token;
}

Holds read(const std::string& path) {
  Holds holds;
  std::ifstream file(path);
  Hold hold;
  for (std::int64_t asked = 0, joined = 0, granted = 0, left = 0;
       file >> hold.who >> hold.number >> asked >> joined >> granted >> left >> hold.token >>
       hold.entry;) {
    hold.asked = Time(asked);
    hold.joined = Time(joined);
    hold.granted = Time(granted);
    hold.left = Time(left);
    if (hold.entry == "-") hold.entry.clear();
    holds.push_back(hold);
  }
  return holds;
}

void Log::add(Hold hold) {
  const std::lock_guard guard(mutex_);
  all_.push_back(std::move(hold));
}

void Log::add(const Holds& holds) {
  const std::lock_guard guard(mutex_);
  all_.insert(all_.end(), holds.begin(), holds.end());
}

Holds Log::all() const {
  const std::lock_guard guard(mutex_);
  return all_;
}

std::size_t Log::size() const {
  const std::lock_guard guard(mutex_);
  return all_.size();
}

}  // namespace baton::history
