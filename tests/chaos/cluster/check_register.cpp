// Checks the numbers that holders wrote under the locks.
#include "chaos/cluster/holds.h"

#include <algorithm>
#include <set>

namespace baton::chaos {
namespace {

struct Write {
  const Record* record;
  std::optional<std::uint64_t> read;  // the number that the same hold had read before
};

struct Register {
  std::vector<Write> accepted;
  std::set<std::uint64_t> open;       // may have been written by killed processes without a record
  std::optional<std::uint64_t> last;  // the number that the driver found at the end
};

std::string words(const Bench& bench, const Record& record) {
  return "client " + std::to_string(record.client) + " op " + std::to_string(record.op) +
         " (lock " + std::to_string(record.lock) + ", token " + std::to_string(record.token) +
         ") wrote " + std::to_string(record.value) + " " + bench.index.when(record.at);
}

void check_chain(Bench& bench, std::uint32_t lock, Register& all) {
  auto& writes = all.accepted;
  // By number; equal numbers by time.
  std::stable_sort(writes.begin(), writes.end(), [](const Write& a, const Write& b) {
    return a.record->value < b.record->value;
  });
  const auto object = [&](const Record& record, const std::string& text) {
    bench.object(Checker::reg, record.at, words(bench, record) + text);
  };
  const auto gap = [&](const Record& at, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t number = from; number < to; ++number) {
      if (all.open.contains(number)) continue;
      object(at, ", but nobody wrote " + std::to_string(number));
      return;
    }
  };
  const Record* greatest = nullptr;  // record with the greatest token so far
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const Record& record = *writes[i].record;
    bench.judged(Checker::reg);
    if (writes[i].read && *writes[i].read + 1 != record.value) {
      object(record, ", having read " + std::to_string(*writes[i].read));
    }
    if (i > 0) {
      const Record& before = *writes[i - 1].record;
      if (before.value == record.value) {
        object(record, ", and so did client " + std::to_string(before.client) + " with token " +
                           std::to_string(before.token) + " " + bench.index.when(before.at) +
                           ": an update is lost");
      } else {
        gap(record, before.value + 1, record.value);
      }
    }
    if (greatest != nullptr && record.token < greatest->token) {
      object(record, ", after " + std::to_string(greatest->value) + " was accepted with token " +
                         std::to_string(greatest->token));
    } else {
      greatest = &record;
    }
  }
  if (!all.last || writes.empty()) return;
  const Record& top = *writes.back().record;
  if (*all.last < top.value) {
    object(top, ", but in the end there is " + std::to_string(*all.last) + " under lock " +
                    std::to_string(lock));
  } else {
    gap(top, top.value + 1, *all.last + 1);
  }
}

}  // namespace

void check_register(Bench& bench) {
  const Index& index = bench.index;
  std::map<std::uint32_t, Register> registers;
  using Key = std::pair<std::uint32_t, std::uint64_t>;
  std::map<Key, std::uint64_t> reads;
  std::map<Key, const Record*> refused;
  std::map<Key, std::uint32_t> pending;  // has read, and has no record of a write yet
  for (const Record& record : bench.records) {
    const Key key{record.client, record.op};
    if (record.kind == Kind::read && record.client == 0) {
      registers[record.lock].last = record.value;
    } else if (record.kind == Kind::read) {
      reads[key] = record.value;
      pending[key] = record.lock;
    } else if (record.kind == Kind::wrote) {
      pending.erase(key);
      if (record.until.count() == 0) {
        refused.try_emplace(key, &record);
        continue;
      }
      const auto read = reads.find(key);
      registers[record.lock].accepted.push_back(
          {&record,
           read == reads.end() ? std::nullopt : std::optional<std::uint64_t>(read->second)});
    }
  }
  for (const auto& [key, lock] : pending) {
    if (index.life(key.first).killed) registers[lock].open.insert(reads[key] + 1);
  }
  for (auto& [lock, all] : registers) check_chain(bench, lock, all);
  for (const Hold& hold : index.holds) {
    const auto found = refused.find({hold.client, hold.op});
    if (found == refused.end() || !hold.last_valid || index.evicted(hold)) continue;
    if (*hold.last_valid <= found->second->at) continue;
    // The register works: a newer holder had used it while this hold was valid.
    bench.object(Checker::overlap, found->second->at,
                 words(bench, *found->second) + " and was refused, though valid " +
                     index.when(*hold.last_valid),
                 &hold);
  }
}

}  // namespace baton::chaos
