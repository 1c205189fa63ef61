#include "zk/lock_list.h"

#include "common/seam/lock_name.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

namespace baton::zk {

namespace {
// Reads are sent in slices, so that releases and looks do not wait behind thousands of them.
constexpr std::size_t kListsAtOnce = 64;
}  // namespace

struct LockList::Walk : Question {
  std::string prefix;
  std::vector<std::string> found;
  std::deque<std::string> ahead;  // directories to be read, by lock name; "": the root
  std::size_t under_way = 0;
  std::size_t strange = 0;  // directories without an entry
  std::optional<Reply> trouble;
  Answer<std::vector<std::string>> answer;
};

void LockList::list(std::string_view prefix, Time until, Answer<std::vector<std::string>> answer) {
  const auto walk = std::make_shared<Walk>();
  walk->prefix = prefix;
  walk->answer = std::move(answer);
  questions_.begin(walk, until, "list the locks");
  walk_from_root(walk);
}

void LockList::walk_from_root(const std::shared_ptr<Walk>& walk) {
  walk->found.clear();
  walk->strange = 0;
  walk->trouble.reset();
  walk->ahead.assign(1, std::string());
  walk->ask({Request::Kind::sync, context_.parts.root.empty() ? "/" : context_.parts.root, {}},
            [walk](Reply& reply, std::uint64_t) {
              if (reply.status != Status::ok) walk->trouble = reply;
            });
  walk_on(walk);
}

void LockList::walk_on(const std::shared_ptr<Walk>& walk) {
  if (context_.parts.root.empty() && walk->strange > context_.parts.most_strange) {
    questions_.settle(walk,
                      Error(Errc::store_error,
                            "list the locks: the URL has no root, and more than " +
                                std::to_string(context_.parts.most_strange) +
                                " directories of other programs lie below \"/\"; give a prefix, or "
                                "move the locks below a root"));
    return;
  }
  while (!walk->ahead.empty() && !walk->trouble && walk->under_way < kListsAtOnce) {
    const std::string name = std::move(walk->ahead.front());
    walk->ahead.pop_front();
    walk_into(walk, name);
  }
  if (walk->under_way != 0) return;
  const auto trouble = walk->trouble;
  if (!trouble) {
    std::sort(walk->found.begin(), walk->found.end());
    questions_.settle(walk, std::move(walk->found));
  } else if (trouble->status == Status::lost) {
    questions_.repeat(walk, [this, walk] { walk_from_root(walk); });
  } else {
    questions_.settle(walk, call_error(trouble->status, trouble->code, "list the locks"));
  }
}

void LockList::walk_into(const std::shared_ptr<Walk>& walk, const std::string& name) {
  ++walk->under_way;
  const std::string where = name.empty() ? (context_.parts.root.empty() ? "/" : context_.parts.root)
                                         : lock_directory(context_.parts.root, name);
  walk->ask({Request::Kind::children, where, {}},
            [this, walk, name, where](Reply& reply, std::uint64_t) {
              --walk->under_way;
              // Skip a directory that is gone meanwhile, or that this client may not read.
              const bool hidden = reply.status == Status::no_auth && !name.empty();
              if (reply.status != Status::ok && reply.status != Status::no_node && !hidden) {
                walk->trouble = reply;
              }
              bool lock = false;
              for (const auto& child : reply.children) {
                if (sequence_of(child)) {
                  lock = true;
                  continue;
                }
                if (where == "/" && child == "zookeeper") continue;
                std::string below = name;
                if (!below.empty()) below += '/';
                below += child;
                // Skip directories that cannot contain a name with the prefix.
                const auto common = std::min(below.size(), walk->prefix.size());
                if (below.compare(0, common, walk->prefix, 0, common) != 0) continue;
                if (parse_lock_name(below).has_value()) walk->ahead.push_back(below);
              }
              if (!lock) ++walk->strange;
              if (lock && !name.empty() && name.starts_with(walk->prefix)) {
                walk->found.push_back(name);
              }
              walk_on(walk);
            });
}

}  // namespace baton::zk
