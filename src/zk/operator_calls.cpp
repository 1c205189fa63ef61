#include "zk/operator_calls.h"

#include "zk/heartbeat.h"
#include "zk/standing.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace baton::zk {

namespace {
// Reads are sent in slices, so that releases and looks do not wait behind thousands of them.
constexpr std::size_t kReadsAtOnce = 64;

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

// ---- inspect

struct OperatorCalls::Reading : Question {
  Reading(LockName lock, Answer<LockSnapshot> to) : name(std::move(lock)), answer(std::move(to)) {}
  const LockName name;
  Answer<LockSnapshot> answer;
  Queue queue;
  std::size_t next = 0;
  LockSnapshot snapshot;
  std::optional<Reply> trouble;
};

void OperatorCalls::inspect(const LockName& name, Time until, Answer<LockSnapshot> answer) {
  const auto reading = std::make_shared<Reading>(name, std::move(answer));
  questions_.begin(reading, until, "list " + context_.directory(name));
  read_line(reading);
}

void OperatorCalls::read_line(const std::shared_ptr<Reading>& reading) {
  reading->next = 0;
  reading->snapshot = {};
  reading->snapshot.name = reading->name.text();
  reading->trouble.reset();
  const std::string where = context_.directory(reading->name);
  reading->ask({Request::Kind::sync, where, {}}, [reading](Reply& reply, std::uint64_t) {
    if (reply.status != Status::ok) reading->trouble = reply;
  });
  reading->ask({Request::Kind::children, where, {}},
               [this, reading, where](Reply& reply, std::uint64_t) {
                 const Reply& said = reading->trouble ? *reading->trouble : reply;
                 if (said.status == Status::lost) {
                   questions_.repeat(reading, [this, reading] { read_line(reading); });
                 } else if (said.status == Status::ok || said.status == Status::no_node) {
                   reading->trouble.reset();
                   reading->queue = make_queue(reply.children);
                   read_entries(reading);
                 } else {
                   questions_.settle(reading, call_error(said.status, said.code, "list " + where));
                 }
               });
}

void OperatorCalls::read_entries(const std::shared_ptr<Reading>& reading) {
  const auto trouble = reading->trouble;
  if (trouble && trouble->status == Status::lost) {
    questions_.repeat(reading, [this, reading] { read_line(reading); });
    return;
  }
  if (trouble) {
    questions_.settle(reading,
                      call_error(trouble->status, trouble->code,
                                 "read the entries of " + context_.directory(reading->name)));
    return;
  }
  const auto& entries = reading->queue.entries;
  if (reading->next == entries.size()) {
    questions_.settle(reading, std::move(reading->snapshot));
    return;
  }
  // Answers come in order: the last answer ends the slice.
  const std::size_t end = std::min(reading->next + kReadsAtOnce, entries.size());
  for (std::size_t i = std::exchange(reading->next, end); i < end; ++i) {
    reading->ask(
        {Request::Kind::get, context_.path(reading->name, entries[i].name), {}},
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

struct OperatorCalls::Proof : Question {
  Proof(OwnTicketPtr mine, Answer<bool> to) : ticket(std::move(mine)), answer(std::move(to)) {}
  const OwnTicketPtr ticket;
  Answer<bool> answer;
  Reply written;
};

void OperatorCalls::verify(OwnTicketPtr ticket, Time until, Answer<bool> answer) {
  const auto proof = std::make_shared<Proof>(std::move(ticket), std::move(answer));
  questions_.begin(proof, until, "list " + context_.directory(proof->ticket->name));
  prove(proof);
}

// Lists the directory after a write. A majority has confirmed the write, so the list contains
// everything that was committed before it.
void OperatorCalls::prove(const std::shared_ptr<Proof>& proof) {
  proof->ask({Request::Kind::remove, kMissingNode, {}},
             [proof](Reply& reply, std::uint64_t) { proof->written = std::move(reply); });
  proof->ask({Request::Kind::children, context_.directory(proof->ticket->name), {}},
             [this, proof](Reply& reply, std::uint64_t) {
               const bool sure = is_missing_node_answer(proof->written.status);
               Listing listing;
               listing.status = sure ? reply.status : proof->written.status;
               listing.code = sure ? reply.code : proof->written.code;
               if (listing.status == Status::lost) {
                 questions_.repeat(proof, [this, proof] { prove(proof); });
                 return;
               }
               if (listing.status == Status::ok) listing.queue = make_queue(reply.children);
               const auto result = standing_of(context_.parts.root, *proof->ticket, listing);
               if (!result) {
                 questions_.settle(proof, result.error());
               } else {
                 questions_.settle(
                     proof, result->view.tickets.size() == 1 && result->view.omitted_ahead == 0);
               }
             });
}

// ---- evict

struct OperatorCalls::Eviction : Question {
  Request request;
  bool in_doubt = false;  // an answer was lost: our removal may have succeeded
  Answer<bool> answer;
};

void OperatorCalls::evict(const LockName& name, std::string_view entry_id, Time until,
                          Answer<bool> answer) {
  const bool entry =
      entry_id.find('/') == std::string_view::npos && sequence_of(entry_id).has_value();
  const auto eviction = std::make_shared<Eviction>();
  // Never remove a node that is not an entry. Ask the store even then, so that a caller without
  // permission or without a connection gets that error.
  eviction->request = entry ? Request{Request::Kind::remove, context_.path(name, entry_id), {}}
                            : Request{Request::Kind::sync, context_.directory(name), {}};
  eviction->answer = std::move(answer);
  questions_.begin(eviction, until, "remove " + context_.path(name, entry_id));
  try_evict(eviction);
}

void OperatorCalls::try_evict(const std::shared_ptr<Eviction>& eviction) {
  eviction->ask(eviction->request, [this, eviction](Reply& reply, std::uint64_t) {
    const bool removal = eviction->request.kind == Request::Kind::remove;
    if (reply.status == Status::lost) {
      eviction->in_doubt = removal;
      questions_.repeat(eviction, [this, eviction] { try_evict(eviction); });
    } else if (!removal) {
      questions_.settle(eviction, false);
    } else if (reply.status == Status::ok) {
      questions_.settle(eviction, true);
    } else if (reply.status == Status::no_node) {
      // The node is gone. If an answer was lost, most likely our removal has removed it.
      questions_.settle(eviction, eviction->in_doubt);
    } else {
      questions_.settle(eviction,
                        call_error(reply.status, reply.code, "remove " + eviction->request.path));
    }
  });
}

}  // namespace baton::zk
