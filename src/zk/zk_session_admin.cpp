// What operators ask: inspect, list, evict. Answers that are lost are asked for again; the caller
// bounds the wait.
#include "common/lock_name.h"
#include "zk/zk_session.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

namespace baton::internal {

namespace {

Entry make_entry(const std::string& name, const ZkReply& reply) {
  Entry entry;
  entry.id = name;
  entry.token = reply.created_at;
  if (auto label = zk_decode_label(reply.data)) {
    entry.label = *std::move(label);
    // As far as a system_clock reaches; whatever the server's clock said.
    constexpr std::int64_t kLast = 9'000'000'000'000;
    entry.since = std::chrono::system_clock::time_point(
        std::chrono::milliseconds(std::clamp<std::int64_t>(reply.ctime_ms, 0, kLast)));
  } else {
    entry.label = "unknown";
  }
  return entry;
}

}  // namespace

// Reads go out in slices: releases and looks of others need not stand behind thousands of them.
constexpr std::size_t kSlice = 64;

struct ZkSession::Reading {
  Reading(LockName lock, ZkQueue line, Answer<LockSnapshot> to)
      : name(std::move(lock)), queue(std::move(line)), answer(std::move(to)) {
    snapshot.name = name.text();
  }
  const LockName name;
  const ZkQueue queue;
  Answer<LockSnapshot> answer;
  std::size_t next = 0;
  LockSnapshot snapshot;
  std::optional<ZkReply> trouble;
};

void ZkSession::inspect(const LockName& name, Answer<LockSnapshot> answer) {
  lister_.read(directory(name), ZkLister::Freshness::synced,
               [this, name, answer = std::move(answer)](const ZkListing& listing) mutable {
                 if (listing.status == ZkStatus::lost) {
                   again([this, name, answer = std::move(answer)]() mutable {
                     inspect(name, std::move(answer));
                   });
                 } else if (listing.status == ZkStatus::ok || listing.status == ZkStatus::no_node) {
                   read_entries(std::make_shared<Reading>(name, listing.queue, std::move(answer)));
                 } else {
                   answer(zk_error(listing.status, listing.code, "list " + directory(name)));
                 }
               });
}

void ZkSession::read_entries(const std::shared_ptr<Reading>& reading) {
  if (reading->trouble && reading->trouble->status == ZkStatus::lost) {
    again([this, reading] { inspect(reading->name, std::move(reading->answer)); });
    return;
  }
  if (reading->trouble) {
    reading->answer(zk_error(reading->trouble->status, reading->trouble->code,
                             "read the entries of " + directory(reading->name)));
    return;
  }
  const auto& entries = reading->queue.entries;
  if (reading->next == entries.size()) {
    reading->answer(std::move(reading->snapshot));
    return;
  }
  // Answered in order: the last answer is the end of the slice.
  const std::size_t end = std::min(reading->next + kSlice, entries.size());
  for (std::size_t i = std::exchange(reading->next, end); i < end; ++i) {
    outbox_.ask(
        {ZkRequest::Kind::get, path(reading->name, entries[i].name), {}},
        [this, reading, i, end](ZkReply& reply, std::uint64_t) {
          if (reply.status == ZkStatus::ok) {
            reading->snapshot.entries.push_back(make_entry(reading->queue.entries[i].name, reply));
          } else if (reply.status != ZkStatus::no_node) {
            reading->trouble = reply;
          }
          if (i + 1 == end) read_entries(reading);
        });
  }
}

void ZkSession::evict(const LockName& name, std::string_view entry_id, Answer<bool> answer) {
  const bool entry =
      entry_id.find('/') == std::string_view::npos && zk_sequence(entry_id).has_value();
  if (!entry) {
    // Not an entry, and never removed; yet "there is none" is the store's to say.
    outbox_.ask({ZkRequest::Kind::sync, directory(name), {}},
                [this, name, id = std::string(entry_id), answer = std::move(answer)](
                    ZkReply& reply, std::uint64_t) mutable {
                  if (reply.status == ZkStatus::lost) {
                    again([this, name, id, answer = std::move(answer)]() mutable {
                      evict(name, id, std::move(answer));
                    });
                  } else {
                    answer(false);
                  }
                });
    return;
  }
  try_evict(name, std::string(entry_id), false, std::move(answer));
}

void ZkSession::try_evict(const LockName& name, const std::string& entry, bool in_doubt,
                          Answer<bool> answer) {
  outbox_.ask({ZkRequest::Kind::remove, path(name, entry), {}},
              [this, name, entry, in_doubt, answer = std::move(answer)](ZkReply& reply,
                                                                        std::uint64_t) mutable {
                if (reply.status == ZkStatus::ok) {
                  answer(true);
                } else if (reply.status == ZkStatus::no_node) {
                  answer(in_doubt);  // gone; if an answer was lost, most likely by us
                } else if (reply.status == ZkStatus::lost) {
                  again([this, name, entry, answer = std::move(answer)]() mutable {
                    try_evict(name, entry, true, std::move(answer));
                  });
                } else {
                  answer(zk_error(reply.status, reply.code, "remove " + path(name, entry)));
                }
              });
}

// ---- list: walks the tree below the root

struct ZkSession::Walk {
  std::string prefix;
  std::vector<std::string> found;
  std::deque<std::string> ahead;  // directories to be read, by lock name; "": the root
  std::size_t under_way = 0;
  std::optional<ZkReply> trouble;
  Answer<std::vector<std::string>> answer;
};

void ZkSession::list(std::string_view prefix, Answer<std::vector<std::string>> answer) {
  auto walk = std::make_shared<Walk>();
  walk->prefix = prefix;
  walk->answer = std::move(answer);
  walk->ahead.emplace_back();
  outbox_.ask({ZkRequest::Kind::sync, parts_.root.empty() ? "/" : parts_.root, {}},
              [walk](ZkReply& reply, std::uint64_t) {
                if (reply.status != ZkStatus::ok) walk->trouble = reply;
              });
  walk_on(walk);
}

void ZkSession::walk_on(const std::shared_ptr<Walk>& walk) {
  while (!walk->ahead.empty() && !walk->trouble && walk->under_way < kSlice) {
    const std::string name = std::move(walk->ahead.front());
    walk->ahead.pop_front();
    walk_into(walk, name);
  }
  if (walk->under_way != 0) return;
  if (!walk->trouble) {
    std::sort(walk->found.begin(), walk->found.end());
    walk->answer(std::move(walk->found));
  } else if (walk->trouble->status == ZkStatus::lost) {
    again([this, walk] { list(walk->prefix, std::move(walk->answer)); });
  } else {
    walk->answer(zk_error(walk->trouble->status, walk->trouble->code, "list the locks"));
  }
}

void ZkSession::walk_into(const std::shared_ptr<Walk>& walk, const std::string& name) {
  ++walk->under_way;
  const std::string where =
      name.empty() ? (parts_.root.empty() ? "/" : parts_.root) : zk_directory(parts_.root, name);
  outbox_.ask({ZkRequest::Kind::children, where, {}},
              [this, walk, name, where](ZkReply& reply, std::uint64_t) {
                --walk->under_way;
                // Gone meanwhile, or not for us to see: nothing of ours is there.
                const bool hidden = reply.status == ZkStatus::no_auth && !name.empty();
                if (reply.status != ZkStatus::ok && reply.status != ZkStatus::no_node && !hidden) {
                  walk->trouble = reply;
                }
                bool lock = false;
                for (const auto& child : reply.children) {
                  if (zk_sequence(child)) {
                    lock = true;
                    continue;
                  }
                  if (where == "/" && child == "zookeeper") continue;
                  const std::string below = name.empty() ? child : name + "/" + child;
                  // Only where names that begin with the prefix can be.
                  const auto common = std::min(below.size(), walk->prefix.size());
                  if (below.compare(0, common, walk->prefix, 0, common) != 0) continue;
                  if (parse_lock_name(below)) walk->ahead.push_back(below);
                }
                if (lock && !name.empty() && name.starts_with(walk->prefix)) {
                  walk->found.push_back(name);
                }
                walk_on(walk);
              });
}

}  // namespace baton::internal
