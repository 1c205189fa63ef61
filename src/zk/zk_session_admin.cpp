// What operators ask: inspect, list, evict. Answers that are lost are asked for again; the caller
// bounds the wait.
#include "common/lock_name.h"
#include "zk/zk_session.h"

#include <algorithm>
#include <utility>

namespace baton::internal {

namespace {

Entry make_entry(const std::string& name, const ZkReply& reply) {
  Entry entry;
  entry.id = name;
  entry.token = reply.created_at;
  if (auto label = zk_decode_label(reply.data)) {
    entry.label = *std::move(label);
    entry.since = std::chrono::system_clock::time_point(std::chrono::milliseconds(reply.ctime_ms));
  } else {
    entry.label = "unknown";
  }
  return entry;
}

}  // namespace

void ZkSession::inspect(const LockName& name, Answer<LockSnapshot> answer) {
  lister_.read(directory(name), ZkLister::Freshness::synced,
               [this, name, answer = std::move(answer)](const ZkListing& listing) mutable {
                 if (listing.status == ZkStatus::lost) {
                   inspect(name, std::move(answer));
                 } else if (listing.status == ZkStatus::ok || listing.status == ZkStatus::no_node) {
                   read_entries(name, listing.queue, std::move(answer));
                 } else {
                   answer(zk_error(listing.status, listing.code, "list " + directory(name)));
                 }
               });
}

void ZkSession::read_entries(const LockName& name, ZkQueue queue, Answer<LockSnapshot> answer) {
  if (queue.entries.empty()) {
    answer(LockSnapshot{name.text(), {}});
    return;
  }
  // All at once; they are answered in order, so the last answer is the end.
  struct Reading {
    LockSnapshot snapshot;
    std::optional<ZkReply> trouble;
    Answer<LockSnapshot> answer;
  };
  auto reading = std::make_shared<Reading>();
  reading->snapshot.name = name.text();
  reading->answer = std::move(answer);
  for (std::size_t i = 0; i < queue.entries.size(); ++i) {
    const bool last = i + 1 == queue.entries.size();
    outbox_.ask(
        {ZkRequest::Kind::get, path(name, queue.entries[i].name), {}},
        [this, name, reading, last, entry = queue.entries[i].name](ZkReply& reply, std::uint64_t) {
          if (reply.status == ZkStatus::ok) {
            reading->snapshot.entries.push_back(make_entry(entry, reply));
          } else if (reply.status != ZkStatus::no_node) {
            reading->trouble = reply;
          }
          if (!last) return;
          if (!reading->trouble) {
            reading->answer(std::move(reading->snapshot));
          } else if (reading->trouble->status == ZkStatus::lost) {
            inspect(name, std::move(reading->answer));
          } else {
            reading->answer(zk_error(reading->trouble->status, reading->trouble->code,
                                     "read the entries of " + directory(name)));
          }
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
                    evict(name, id, std::move(answer));
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
                  try_evict(name, entry, true, std::move(answer));
                } else {
                  answer(zk_error(reply.status, reply.code, "remove " + path(name, entry)));
                }
              });
}

// ---- list: walks the tree below the root

struct ZkSession::Walk {
  std::string prefix;
  std::vector<std::string> found;
  std::size_t open = 0;  // directories not answered yet
  bool lost = false;
  std::optional<ZkReply> trouble;
  Answer<std::vector<std::string>> answer;
};

void ZkSession::list(std::string_view prefix, Answer<std::vector<std::string>> answer) {
  auto walk = std::make_shared<Walk>();
  walk->prefix = prefix;
  walk->answer = std::move(answer);
  outbox_.ask({ZkRequest::Kind::sync, parts_.root.empty() ? "/" : parts_.root, {}},
              [walk](ZkReply& reply, std::uint64_t) {
                if (reply.status == ZkStatus::lost) walk->lost = true;
              });
  this->walk(walk, "", 0);
}

// name: "" or the lock whose directory is read.
void ZkSession::walk(const std::shared_ptr<Walk>& walk, const std::string& name, int depth) {
  constexpr int kDeepest = 8;
  ++walk->open;
  const std::string where =
      name.empty() ? (parts_.root.empty() ? "/" : parts_.root) : zk_directory(parts_.root, name);
  outbox_.ask({ZkRequest::Kind::children, where, {}}, [this, walk, name, depth, where](
                                                          ZkReply& reply, std::uint64_t) {
    if (reply.status == ZkStatus::lost) walk->lost = true;
    if (reply.status == ZkStatus::failed || reply.status == ZkStatus::expired) {
      walk->trouble = reply;
    }
    bool lock = false;
    for (const auto& child : reply.children) {
      if (zk_sequence(child)) {
        lock = true;
        continue;
      }
      const std::string below = name.empty() ? child : name + "/" + child;
      if (depth >= kDeepest || (where == "/" && child == "zookeeper")) continue;
      // Only where names that begin with the prefix can be.
      const auto common = std::min(below.size(), walk->prefix.size());
      if (below.compare(0, common, walk->prefix, 0, common) != 0) continue;
      if (!parse_lock_name(below)) continue;  // not ours
      this->walk(walk, below, depth + 1);
    }
    if (lock && !name.empty() && name.starts_with(walk->prefix)) walk->found.push_back(name);
    if (--walk->open != 0) return;
    if (walk->trouble) {
      walk->answer(zk_error(walk->trouble->status, walk->trouble->code, "list the locks"));
    } else if (walk->lost) {
      list(walk->prefix, std::move(walk->answer));
    } else {
      std::sort(walk->found.begin(), walk->found.end());
      walk->answer(std::move(walk->found));
    }
  });
}

}  // namespace baton::internal
