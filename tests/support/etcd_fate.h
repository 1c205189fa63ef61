// Finds out from etcd's history when an entry was removed. etcd keeps every revision until it is
// compacted.
#pragma once

#include "support/etcd_store.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace baton::test {

struct EtcdFate {
  std::string key;
  std::int64_t lease = 0;
  std::int64_t gone = 0;       // the revision that removed it; 0: it exists
  std::size_t with_lease = 0;  // keys of its lease just before that revision, with the entry itself
  std::size_t left = 0;        // keys of its lease after that revision
  bool lease_lives = false;    // whether the lease exists now
};

// The fate of the entry below `prefix` with create revision `token`. nullopt: there was no such
// entry. Throws EtcdError if that revision was compacted.
inline std::optional<EtcdFate> etcd_fate(EtcdStore& store, const std::string& prefix,
                                         std::int64_t token) {
  EtcdFate fate;
  for (const auto& key : store.keys(prefix, token)) {
    if (key.create_revision != token) continue;
    fate.key = key.key;
    fate.lease = key.lease;
  }
  if (fate.key.empty()) return std::nullopt;
  fate.lease_lives = store.lease(fate.lease).has_value();
  const auto there = [&](std::int64_t revision) {
    for (const auto& key : store.keys(fate.key, revision)) {
      if (key.key == fate.key && key.create_revision == token) return true;
    }
    return false;
  };
  std::int64_t before = token;  // a revision at which the entry existed
  std::int64_t after = store.revision();
  if (there(after)) return fate;
  while (after - before > 1) {
    const std::int64_t middle = before + (after - before) / 2;
    (there(middle) ? before : after) = middle;
  }
  fate.gone = after;
  const auto of_lease = [&](std::int64_t revision) {
    std::size_t count = 0;
    for (const auto& key : store.keys("", revision)) count += key.lease == fate.lease;
    return count;
  };
  fate.with_lease = of_lease(before);
  fate.left = of_lease(after);
  return fate;
}

}  // namespace baton::test
