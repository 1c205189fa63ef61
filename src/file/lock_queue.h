// LockQueue: joins, reads and removes the queue of one lock, over all its generations, for one
// session.
//
// A generation is one queue file. A generation that is sealed or full (frozen) accepts no more
// joins, and later joins go to a new file. Rules:
//  1. A session joins a generation only after it has listed the directory while the file of that
//     generation existed, has found no higher generation in this listing, and has sealed all lower
//     ones of this listing.
//  2. A join record behind a seal is void. So when a higher generation comes into use, the joins of
//     the lower ones are fixed, and all of them are ahead of the joins of the higher one.
//  3. A lower generation that appears later was created by a slow session. This session lists the
//     directory before it joins, sees the higher generation and leaves its own one empty.
//  4. The tokens of a generation are allocated after rule 1 is fulfilled, so later generations have
//     larger tokens.
//  5. A generation is unlinked only when it is frozen and none of its tickets is in line. Its name
//     is never used again.
#pragma once

#include "file/clients.h"
#include "file/lock_dir.h"
#include "file/queue_file.h"
#include "file/token_counter.h"

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace baton::file {

struct Generation {
  explicit Generation(std::shared_ptr<QueueFile> f) : file(std::move(f)) {}
  std::shared_ptr<QueueFile> file;
  std::vector<std::shared_ptr<Generation>> lower;  // generations ahead, ascending; see rule 2
};

// One record of one generation; empty: no ticket.
struct QueuedTicket {
  std::shared_ptr<Generation> generation;
  std::uint32_t index = 0;

  explicit operator bool() const noexcept { return generation != nullptr; }

  QueueRecord& record() const noexcept { return generation->file->record(index); }
  std::uint64_t rank() const noexcept { return generation->file->token(index); }
  ClientId client() const noexcept { return generation->file->client(index); }
  bool in_line() const noexcept { return generation->file->in_line(index); }
};

// All calls may throw Error.
class LockQueue {
 public:
  // tokens: may be null if the caller never joins.
  LockQueue(const StoreDir& store, TokenCounter* tokens, Clients& clients, const LockName& name);

  QueuedTicket join(std::uint64_t nonce);

  // Whether that ticket is in line, and its file is the one that other clients find by name.
  bool stands(const QueuedTicket& ticket);
  // The predecessor: the nearest ticket ahead whose client lives. omitted: how many more tickets
  // are in line ahead of the predecessor, at most 1024. Marks tickets of dead clients on the way.
  QueuedTicket ahead(const QueuedTicket& ticket, std::size_t& omitted);
  // The nearest ticket behind it that is in line, whether its client lives or not.
  QueuedTicket behind(const QueuedTicket& ticket);
  QueuedTicket find(std::uint64_t rank) const;

  bool busy();                       // whether a ticket of a living client is in line
  std::vector<QueuedTicket> line();  // all tickets of living clients in line, in order

  // Removes generations ahead of the current one that have no ticket in line.
  void prune();
  // Removes all files if no ticket of a living client is in line. True: no file is left.
  bool remove_if_unused();

  bool blank() const noexcept { return generations_.empty() && !directory_.is_open(); }
  bool has_descriptors() const noexcept;
  void close_descriptors() noexcept;

 private:
  using Listing = std::vector<std::shared_ptr<Generation>>;

  Listing load();
  void choose_generation();
  void adopt(const Listing& listing);
  bool current_usable();
  bool someone_lives(Generation& generation);
  void refresh(Generation& generation);
  void unlink(const QueueFile& file) noexcept;
  void check_tokens(const QueuedTicket& ticket);

  LockDir directory_;
  TokenCounter* tokens_;
  Clients& clients_;
  std::map<GenerationId, std::shared_ptr<Generation>> generations_;  // mapped
  std::shared_ptr<Generation> current_;  // the generation for new joins; may be null
  std::uint64_t last_token_ = 0;
};

}  // namespace baton::file
