// Session: implements the operators' calls inspect, list and evict, and verify. Lost answers are
// requested again until the caller stops waiting.
#include "common/seam/lock_name.h"
#include "zk/read_coalescer.h"
#include "zk/session.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

namespace baton::zk {

namespace {

Entry make_entry(const std::string& name, const Reply& reply) {
  Entry entry;
  entry.id = name;
  entry.token = reply.created_at;
  if (auto label = decode_label(reply.data)) {
    entry.label = *std::move(label);
    // The server's clock may be wrong: limit the time to the range of system_clock.
    constexpr std::int64_t kLast = 9'000'000'000'000;
    entry.since = std::chrono::system_clock::time_point(
        std::chrono::milliseconds(std::clamp<std::int64_t>(reply.ctime_ms, 0, kLast)));
  } else {
    entry.label = "unknown";
  }
  return entry;
}

}  // namespace

// Reads are sent in slices, so that releases and looks do not wait behind thousands of them.
constexpr std::size_t kSlice = 64;

// ---- questions end when their callers stop waiting

void Session::Question::ask(Request request, Outbox::Answer to) {
  if (const auto open = inquiry.lock()) open->ask(std::move(request), std::move(to));
}

template <class Q>
void Session::begin(const std::shared_ptr<Q>& question, const std::string& what) {
  const Time wanted = take_wanted_until();
  const Time until = wanted != kNever ? wanted : parts_.loop->now() + Nanos(parts_.patience);
  // If the caller has a deadline, reaching it is a timeout. Otherwise our own limit means that no
  // server answers.
  const Errc late = wanted != kNever ? Errc::timeout : Errc::connection_failed;
  auto inquiry = Inquiry::begin(*parts_.loop, outbox_, until, [this, question, what, late] {
    inquiries_.erase(question->inquiry.lock());
    question->answer(
        Error(late, what + ": no server answered in time; check the connection and retry"));
  });
  question->inquiry = inquiry;
  inquiries_.insert(std::move(inquiry));
}

template <class Q, class T>
void Session::settle(const std::shared_ptr<Q>& question, T result) {
  const auto inquiry = question->inquiry.lock();
  if (inquiry == nullptr || !inquiry->finish()) return;
  inquiries_.erase(inquiry);
  question->answer(std::move(result));
}

template <class Q>
void Session::repeat(const std::shared_ptr<Q>& question,
                     void (Session::*step)(const std::shared_ptr<Q>&)) {
  retries_.retry_later([this, question, step] {
    const auto inquiry = question->inquiry.lock();
    if (inquiry != nullptr && inquiry->wanted()) (this->*step)(question);
  });
}

// ---- inspect

struct Session::Reading : Question {
  Reading(LockName lock, Answer<LockSnapshot> to) : name(std::move(lock)), answer(std::move(to)) {}
  const LockName name;
  Answer<LockSnapshot> answer;
  Queue queue;
  std::size_t next = 0;
  LockSnapshot snapshot;
  std::optional<Reply> trouble;
};

void Session::inspect(const LockName& name, Answer<LockSnapshot> answer) {
  const auto reading = std::make_shared<Reading>(name, std::move(answer));
  begin(reading, "list " + directory(name));
  read_line(reading);
}

void Session::read_line(const std::shared_ptr<Reading>& reading) {
  reading->next = 0;
  reading->snapshot = {};
  reading->snapshot.name = reading->name.text();
  reading->trouble.reset();
  const std::string where = directory(reading->name);
  reading->ask({Request::Kind::sync, where, {}}, [reading](Reply& reply, std::uint64_t) {
    if (reply.status != Status::ok) reading->trouble = reply;
  });
  reading->ask({Request::Kind::children, where, {}},
               [this, reading, where](Reply& reply, std::uint64_t) {
                 const Reply& said = reading->trouble ? *reading->trouble : reply;
                 if (said.status == Status::lost) {
                   repeat(reading, &Session::read_line);
                 } else if (said.status == Status::ok || said.status == Status::no_node) {
                   reading->trouble.reset();
                   reading->queue = make_queue(reply.children);
                   read_entries(reading);
                 } else {
                   settle(reading, call_error(said.status, said.code, "list " + where));
                 }
               });
}

void Session::read_entries(const std::shared_ptr<Reading>& reading) {
  if (reading->trouble && reading->trouble->status == Status::lost) {
    repeat(reading, &Session::read_line);
    return;
  }
  if (reading->trouble) {
    settle(reading, call_error(reading->trouble->status, reading->trouble->code,
                               "read the entries of " + directory(reading->name)));
    return;
  }
  const auto& entries = reading->queue.entries;
  if (reading->next == entries.size()) {
    settle(reading, std::move(reading->snapshot));
    return;
  }
  // Answers come in order: the last answer ends the slice.
  const std::size_t end = std::min(reading->next + kSlice, entries.size());
  for (std::size_t i = std::exchange(reading->next, end); i < end; ++i) {
    reading->ask(
        {Request::Kind::get, path(reading->name, entries[i].name), {}},
        [this, reading, i, end](Reply& reply, std::uint64_t) {
          if (reply.status == Status::ok) {
            reading->snapshot.entries.push_back(make_entry(reading->queue.entries[i].name, reply));
          } else if (reply.status != Status::no_node) {
            reading->trouble = reply;
          }
          if (i + 1 == end) read_entries(reading);
        });
  }
}

// ---- verify

struct Session::Proof : Question {
  Proof(OwnTicketPtr mine, Answer<bool> to) : ticket(std::move(mine)), answer(std::move(to)) {}
  const OwnTicketPtr ticket;
  Answer<bool> answer;
  Reply written;
};

void Session::verify(const LockName& name, Nonce nonce, Answer<bool> answer) {
  const auto known = tickets_.find(nonce);
  if (known == tickets_.end() || !is_present(known->second->state())) {
    take_wanted_until();
    parts_.loop->defer([answer = std::move(answer)]() mutable { answer(false); });
    return;
  }
  const auto proof = std::make_shared<Proof>(known->second, std::move(answer));
  begin(proof, "list " + directory(name));
  prove(proof);
}

// Lists the directory after a write. A majority has confirmed the write, so the list contains
// everything that was committed before it.
void Session::prove(const std::shared_ptr<Proof>& proof) {
  proof->ask({Request::Kind::remove, kMissingNode, {}},
             [proof](Reply& reply, std::uint64_t) { proof->written = std::move(reply); });
  proof->ask({Request::Kind::children, directory(proof->ticket->name), {}},
             [this, proof](Reply& reply, std::uint64_t) {
               const bool sure = is_missing_node_answer(proof->written.status);
               Listing listing;
               listing.status = sure ? reply.status : proof->written.status;
               listing.code = sure ? reply.code : proof->written.code;
               if (listing.status == Status::lost) {
                 repeat(proof, &Session::prove);
                 return;
               }
               if (listing.status == Status::ok) listing.queue = make_queue(reply.children);
               const auto result = standing(proof->ticket, listing);
               if (!result) {
                 settle(proof, result.error());
               } else {
                 settle(proof, result->view.tickets.size() == 1 && result->view.omitted_ahead == 0);
               }
             });
}

// ---- evict

struct Session::Eviction : Question {
  Request request;
  bool in_doubt = false;  // an answer was lost: our removal may have succeeded
  Answer<bool> answer;
};

void Session::evict(const LockName& name, std::string_view entry_id, Answer<bool> answer) {
  const bool entry =
      entry_id.find('/') == std::string_view::npos && sequence_of(entry_id).has_value();
  const auto eviction = std::make_shared<Eviction>();
  // Never remove a node that is not an entry. Ask the store even then, so that a caller without
  // permission or without a connection gets that error.
  eviction->request = entry ? Request{Request::Kind::remove, path(name, entry_id), {}}
                            : Request{Request::Kind::sync, directory(name), {}};
  eviction->answer = std::move(answer);
  begin(eviction, "remove " + path(name, entry_id));
  try_evict(eviction);
}

void Session::try_evict(const std::shared_ptr<Eviction>& eviction) {
  eviction->ask(eviction->request, [this, eviction](Reply& reply, std::uint64_t) {
    const bool removal = eviction->request.kind == Request::Kind::remove;
    if (reply.status == Status::lost) {
      eviction->in_doubt = removal;
      repeat(eviction, &Session::try_evict);
    } else if (!removal) {
      settle(eviction, false);
    } else if (reply.status == Status::ok) {
      settle(eviction, true);
    } else if (reply.status == Status::no_node) {
      settle(eviction, eviction->in_doubt);  // gone; if in doubt, most likely removed by us
    } else {
      settle(eviction, call_error(reply.status, reply.code, "remove " + eviction->request.path));
    }
  });
}

// ---- list: reads the tree below the root

struct Session::Walk : Question {
  std::string prefix;
  std::vector<std::string> found;
  std::deque<std::string> ahead;  // directories to be read, by lock name; "": the root
  std::size_t under_way = 0;
  std::size_t strange = 0;  // directories without an entry
  std::optional<Reply> trouble;
  Answer<std::vector<std::string>> answer;
};

void Session::list(std::string_view prefix, Answer<std::vector<std::string>> answer) {
  const auto walk = std::make_shared<Walk>();
  walk->prefix = prefix;
  walk->answer = std::move(answer);
  begin(walk, "list the locks");
  walk_from_root(walk);
}

void Session::walk_from_root(const std::shared_ptr<Walk>& walk) {
  walk->found.clear();
  walk->strange = 0;
  walk->trouble.reset();
  walk->ahead.assign(1, std::string());
  walk->ask({Request::Kind::sync, parts_.root.empty() ? "/" : parts_.root, {}},
            [walk](Reply& reply, std::uint64_t) {
              if (reply.status != Status::ok) walk->trouble = reply;
            });
  walk_on(walk);
}

void Session::walk_on(const std::shared_ptr<Walk>& walk) {
  if (parts_.root.empty() && walk->strange > parts_.most_strange) {
    settle(walk, Error(Errc::store_error,
                       "list the locks: the URL has no root, and more than " +
                           std::to_string(parts_.most_strange) +
                           " directories of other programs lie below \"/\"; give a prefix, or "
                           "move the locks below a root"));
    return;
  }
  while (!walk->ahead.empty() && !walk->trouble && walk->under_way < kSlice) {
    const std::string name = std::move(walk->ahead.front());
    walk->ahead.pop_front();
    walk_into(walk, name);
  }
  if (walk->under_way != 0) return;
  if (!walk->trouble) {
    std::sort(walk->found.begin(), walk->found.end());
    settle(walk, std::move(walk->found));
  } else if (walk->trouble->status == Status::lost) {
    repeat(walk, &Session::walk_from_root);
  } else {
    settle(walk, call_error(walk->trouble->status, walk->trouble->code, "list the locks"));
  }
}

void Session::walk_into(const std::shared_ptr<Walk>& walk, const std::string& name) {
  ++walk->under_way;
  const std::string where =
      name.empty() ? (parts_.root.empty() ? "/" : parts_.root) : lock_directory(parts_.root, name);
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
