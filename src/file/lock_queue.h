// LockQueue: the queue of one lock over all its generations, as one session sees it.
//
// A generation that is sealed or full takes no more joins; the next ones go to a new file. Rules:
//  1. A session joins a generation only after it has listed the directory, while the file was
//     there, and found no higher one; and after it has sealed all lower ones of that listing.
//  2. Whoever joins behind a seal has joined nothing. So when a higher generation comes into use,
//     the joins of the lower ones are fixed, and all of them stand ahead.
//  3. A lower generation that appears later belongs to a straggler, who lists before he joins, sees
//     the higher one and leaves his empty.
//  4. Tokens for a generation are taken after rule 1 was done: later generations, larger tokens.
//  5. A generation is unlinked only when it is frozen and nobody in it is in line; its name is
//     never used again.
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
  std::vector<std::shared_ptr<Generation>> lower;  // those ahead of it, ascending; see rule 2
};

// One record of one generation, or nowhere.
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
  // tokens: null for one who never joins.
  LockQueue(const StoreDir& store, TokenCounter* tokens, Clients& clients, const LockName& name);

  QueuedTicket join(std::uint64_t nonce);

  // Whether that place is in line, and in the file that others find under its name.
  bool stands(const QueuedTicket& ticket);
  // The nearest living one ahead of it, and how many more are in line before that (at most 1024).
  QueuedTicket ahead(const QueuedTicket& ticket, std::size_t& omitted);
  // The nearest one behind it that is in line, dead or alive.
  QueuedTicket behind(const QueuedTicket& ticket);
  QueuedTicket find(std::uint64_t rank) const;

  bool busy();                       // does anybody living stand in line?
  std::vector<QueuedTicket> line();  // all of them, in order

  // Removes generations ahead of the current one that have nobody in line.
  void prune();
  // Removes everything if nobody stands in line. True: nothing is left.
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
  std::shared_ptr<Generation> current_;                              // where we join; may be null
  std::uint64_t last_token_ = 0;
};

}  // namespace baton::file
