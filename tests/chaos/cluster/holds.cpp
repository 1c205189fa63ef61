#include "chaos/cluster/holds.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>

namespace baton::chaos {
namespace {

void earliest(Moment& moment, Time at) {
  if (!moment || at < *moment) moment = at;
}

void latest(Moment& moment, Time at) {
  if (!moment || at > *moment) moment = at;
}

void add_to(Hold& hold, const Record& record) {
  const auto due = [&record] {
    return record.until.count() != 0 ? Moment(record.until) : Moment();
  };
  switch (record.kind) {
    case Kind::asked:
      hold.asked = record.at;
      hold.answer_due = due();
      break;
    case Kind::granted:
      hold.granted = record.at;
      break;
    case Kind::valid:
      earliest(hold.first_valid, record.at);
      latest(hold.last_valid, record.at);
      hold.until = std::max(hold.until, record.until);
      break;
    case Kind::invalid:
      earliest(hold.invalid, record.at);
      break;
    case Kind::lost:
      earliest(hold.lost, record.at);
      hold.code = record.value;
      break;
    case Kind::revived:
      earliest(hold.revived, record.at);
      break;
    case Kind::release:
      earliest(hold.release, record.at);
      hold.release_due = due();
      break;
    case Kind::released:
    case Kind::unsure:
      hold.released = record.at;
      hold.confirmed = record.kind == Kind::released;
      break;
    case Kind::gave_up:
      hold.gave_up = record.at;
      hold.code = record.value;
      break;
    default:
      break;
  }
  if (record.token != 0 && hold.token == 0) hold.token = record.token;
}

void add_to(Life& life, const Record& record) {
  switch (record.kind) {
    case Kind::killed:
      life.killed = record.at;
      break;
    case Kind::paused:
      life.pauses.emplace_back(record.at, Time::max());
      break;
    case Kind::resumed:
      if (!life.pauses.empty()) life.pauses.back().second = record.at;
      break;
    default:
      break;
  }
}

void add_to(Entry& entry, const Record& record) {
  switch (record.kind) {
    case Kind::present:
      if (record.until.count() != 0) earliest(entry.seen, record.until);
      latest(entry.present, record.at);
      if (!entry.first_gone) latest(entry.before_gone, record.at);
      if (entry.first_gone && !entry.back) entry.back = record.at;
      entry.gone.reset();  // an entry does not come back, so the reading without it was stale
      break;
    case Kind::gone:
      if (!entry.gone) entry.gone = record.at;
      if (!entry.first_gone) entry.first_gone = record.at;
      break;
    case Kind::evicted:
      earliest(entry.evicted, record.at);
      break;
    case Kind::foreign:
      entry.foreign = true;
      break;
    default:
      break;
  }
}

}  // namespace

Time Life::paused_between(Time from, Time to) const {
  Time sum{};
  for (const auto& [begin, end] : pauses) {
    sum += std::max(Time{}, std::min(end, to) - std::max(begin, from));
  }
  return sum;
}

Index::Index(const std::vector<Record>& records, bool servers_may_forget) {
  if (!records.empty()) {
    begin = records.front().at;
    end = records.back().at;
  }
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::size_t> numbers;
  for (const Record& record : records) {
    if (record.client != 0) {
      if (record.kind == Kind::start) lives[record.client].start = record.at;
      if (record.kind == Kind::stop) lives[record.client].stop = record.at;
      if (record.op == 0) continue;
      const auto [found, fresh] = numbers.try_emplace({record.client, record.op}, holds.size());
      if (fresh) {
        holds.emplace_back();
        holds.back().client = record.client;
        holds.back().lock = record.lock;
        holds.back().op = record.op;
      }
      add_to(holds[found->second], record);
      continue;
    }
    switch (record.kind) {
      case Kind::calm:
        earliest(calm, record.at);
        break;
      case Kind::stray:
        astray.push_back({record.value, record.until, record.at, Time::max()});
        break;
      case Kind::mended:
        for (Astray& each : astray) {
          if (each.server == record.value) each.to = std::min(each.to, record.at);
        }
        break;
      case Kind::present:
      case Kind::gone:
      case Kind::evicted:
      case Kind::foreign:
        add_to(entries[{record.lock, record.token}], record);
        break;
      case Kind::killed:
      case Kind::paused:
      case Kind::resumed:
        add_to(lives[static_cast<std::uint32_t>(record.value)], record);
        break;
      default:
        break;
    }
  }
  if (servers_may_forget) find_holes();
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (holds[i].first_valid) grants[holds[i].lock].push_back(i);
  }
  for (auto& [lock, list] : grants) {
    std::sort(list.begin(), list.end(), [this](std::size_t a, std::size_t b) {
      return *holds[a].first_valid < *holds[b].first_valid;
    });
  }
}

void Index::find_holes() {
  constexpr std::size_t kSeveral = 2;  // a single entry may be a lost removal and a stale reading
  std::set<std::pair<std::uint32_t, std::uint64_t>> let_go;
  for (const Hold& hold : holds) {
    const auto found = entries.find({hold.lock, hold.token});
    if (found == entries.end() || !found->second.first_gone) continue;
    const Moment over = earlier(earlier(hold.release, hold.lost), life(hold.client).killed);
    if (over && *over <= *found->second.first_gone) let_go.insert(found->first);
  }
  std::map<Time, std::vector<Entry*>> readings;
  for (auto& [key, entry] : entries) {
    if (entry.back && let_go.contains(key)) readings[*entry.back].push_back(&entry);
  }
  for (auto& [at, back] : readings) {
    const Astray* const known = astray_at(at);
    if (back.size() < kSeveral && known == nullptr) continue;
    Hole hole{at, at, back.size()};
    for (Entry* entry : back) {
      hole.from = std::min(hole.from, *entry->first_gone);
      // That the entry is there again proves nothing about the time before.
      entry->present = entry->before_gone;
      entry->gone = entry->first_gone;
    }
    if (known != nullptr) hole.from = std::max(hole.from, known->from);
    holes.push_back(hole);
  }
}

const Astray* Index::astray_at(Time at) const {
  const auto found = std::find_if(astray.begin(), astray.end(), [at](const Astray& each) {
    return each.from <= at && at <= each.to;
  });
  return found == astray.end() ? nullptr : &*found;
}

const Entry* Index::entry(const Hold& hold) const {
  const auto found = entries.find({hold.lock, hold.token});
  return found == entries.end() ? nullptr : &found->second;
}

Moment Index::evicted(const Hold& hold) const {
  const Entry* seen = entry(hold);
  return seen == nullptr ? Moment() : seen->evicted;
}

const Life& Index::life(std::uint32_t client) const {
  static const Life nobody;
  const auto found = lives.find(client);
  return found == lives.end() ? nobody : found->second;
}

std::string Index::when(Time at) const {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "at %.4f s",
                std::chrono::duration<double>(at - begin).count());
  return text.data();
}

std::string Index::who(const Hold& hold) const {
  return "client " + std::to_string(hold.client) + " op " + std::to_string(hold.op) + " (lock " +
         std::to_string(hold.lock) + ", token " + std::to_string(hold.token) + ")";
}

Moment earlier(Moment a, Moment b) {
  if (a && b) return std::min(a, b);
  return a ? a : b;
}

history::Holds Index::proven(const std::vector<std::size_t>& numbers) const {
  history::Holds found;
  for (const std::size_t number : numbers) {
    const Hold& hold = holds[number];
    found.push_back({.granted = *hold.first_valid,
                     .left = *earlier(hold.last_valid, evicted(hold)) + Time(1),
                     .token = hold.token,
                     .number = number,
                     .asked = hold.asked.value_or(Time{})});
  }
  return found;
}

EarliestAbove::EarliestAbove(std::vector<Item> items)
    : items_(std::move(items)), earliest_(items_.size()) {
  std::sort(items_.begin(), items_.end(),
            [](const Item& a, const Item& b) { return a.key < b.key; });
  for (std::size_t i = items_.size(); i-- > 0;) {
    const bool last = i + 1 == items_.size();
    earliest_[i] = last || items_[i].at < items_[earliest_[i + 1]].at ? i : earliest_[i + 1];
  }
}

const EarliestAbove::Item* EarliestAbove::find(std::uint64_t key) const {
  const auto first =
      std::upper_bound(items_.begin(), items_.end(), key,
                       [](std::uint64_t wanted, const Item& item) { return wanted < item.key; });
  if (first == items_.end()) return nullptr;
  return &items_[earliest_[static_cast<std::size_t>(first - items_.begin())]];
}

std::string in_ms(Time duration) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.1f ms",
                std::chrono::duration<double, std::milli>(duration).count());
  return text.data();
}

}  // namespace baton::chaos
