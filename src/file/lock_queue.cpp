#include "file/lock_queue.h"

#include "file/error.h"

#include <unistd.h>
#include <fcntl.h>

#include <algorithm>

namespace baton::file {

namespace {

constexpr std::size_t kCountAhead = 1024;
constexpr std::uint32_t kLastGeneration = ~std::uint32_t{0};

}  // namespace

LockQueue::LockQueue(const StoreDir& store, TokenCounter* tokens, Clients& clients,
                     const LockName& name)
    : directory_(store, name), tokens_(tokens), clients_(clients) {}

LockQueue::Listing LockQueue::load() {
  std::vector<GenerationId> ids;
  if (!directory_.open()) {
    generations_.clear();
    return {};
  }
  const bool there = for_each_entry(directory_.get(), [&](std::string_view name) {
    if (const auto id = parse_queue_file_name(name)) ids.push_back(*id);
  });
  if (!there) {  // another client removed it, perhaps during the listing: no ticket is left
    directory_.close();
    generations_.clear();
    return {};
  }
  std::sort(ids.begin(), ids.end());
  Listing listing;
  std::map<GenerationId, std::shared_ptr<Generation>> known;
  for (const GenerationId id : ids) {
    std::shared_ptr<Generation> generation;
    if (const auto it = generations_.find(id); it != generations_.end()) {
      generation = it->second;
      refresh(*generation);
    } else if (auto file = QueueFile::open(directory_.get(), id)) {
      generation = std::make_shared<Generation>(std::move(file));
    } else {
      continue;  // removed since the listing, so it had no ticket in line (rule 5)
    }
    known.emplace(id, generation);
    listing.push_back(std::move(generation));
  }
  generations_ = std::move(known);
  return listing;
}

void LockQueue::refresh(Generation& generation) {
  QueueFile& file = *generation.file;
  if (file.frozen()) return;
  if (file.has_descriptor()) {
    file.refresh();
    return;
  }
  struct stat status {};
  if (!directory_.stat_file(file.name(), status)) status = {};
  file.refresh(status);
}

bool LockQueue::current_usable() {
  if (!current_) return false;
  QueueFile& file = *current_->file;
  if (!file.frozen() && !file.has_descriptor() && directory_.open()) {
    if (file.reopen(directory_.get())) file.refresh();
  }
  return file.has_descriptor() && !file.frozen();
}

void LockQueue::choose_generation() {
  directory_.create();
  Listing listing = load();
  if (!directory_.is_open()) return;
  if (listing.empty() || listing.back()->file->frozen()) {
    const std::uint32_t highest = listing.empty() ? 0 : listing.back()->file->id().number;
    if (highest == kLastGeneration) {
      throw damaged("the queue has a file of generation " + std::to_string(highest) +
                    ", which is the last possible number; remove this file");
    }
    const std::uint32_t number = highest + 1;
    auto file = QueueFile::create(directory_.store(), directory_.get(), {number, random_u64()});
    if (!file) {
      directory_.close();  // another client removed the directory
      return;
    }
    const GenerationId id = file->id();
    generations_[id] = std::make_shared<Generation>(std::move(file));
    listing = load();  // rule 1 needs a listing that was made while the file existed
  }
  if (!listing.empty() && !listing.back()->file->frozen()) adopt(listing);
}

void LockQueue::adopt(const Listing& listing) {
  const std::shared_ptr<Generation>& top = listing.back();
  top->lower.clear();
  for (const auto& lower : listing) {
    if (lower == top) break;
    QueueFile& file = *lower->file;
    if (!file.frozen() && file.reopen(directory_.get())) file.seal();
    file.close_descriptor();
    if (file.drained()) {
      unlink(file);
      generations_.erase(file.id());
    } else {
      top->lower.push_back(lower);
    }
  }
  if (top->file->reopen(directory_.get())) current_ = top;
}

QueuedTicket LockQueue::join(std::uint64_t nonce) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    if (!current_usable()) {
      current_.reset();
      choose_generation();
      if (!current_) continue;
    }
    QueueFile& file = *current_->file;
    const std::uint64_t first = file.empty() ? tokens_->allocate(file.capacity()) : 0;
    const auto index = file.join(clients_.own(), nonce, first);
    if (!index) continue;
    QueuedTicket ticket{current_, *index};
    try {
      check_tokens(ticket);
    } catch (...) {
      set_flag(ticket.record(), RecordFlag::withdrawn);
      throw;
    }
    last_token_ = ticket.rank();
    return ticket;
  }
  throw damaged("cannot join the queue: its files keep changing; nothing is locked");
}

void LockQueue::check_tokens(const QueuedTicket& ticket) {
  // The client that wrote the header had allocated all tokens of this file before. So if the
  // counter is below them now, it went back.
  QueueFile& own = *ticket.generation->file;
  bool back = ticket.rank() <= last_token_ || !tokens_->handed_out(own.token(own.capacity()));
  for (const auto& lower : ticket.generation->lower) {
    QueueFile& file = *lower->file;
    back = back || (!file.drained() && file.token(file.end()) > ticket.generation->file->token(0));
  }
  if (back) {
    throw damaged("the token counter went back: token " + std::to_string(ticket.rank()) +
                  " is not above those of earlier tickets; nothing is locked");
  }
}

bool LockQueue::stands(const QueuedTicket& ticket) {
  if (!ticket.in_line()) return false;
  struct stat status {};
  const QueueFile& file = *ticket.generation->file;
  return directory_.stat_file(file.name(), status) && ticket.generation->file->refresh(status);
}

QueuedTicket LockQueue::ahead(const QueuedTicket& ticket, std::size_t& omitted) {
  omitted = 0;
  QueuedTicket nearest;
  const auto search = [&](const std::shared_ptr<Generation>& generation, std::uint32_t from) {
    QueueFile& file = *generation->file;
    for (std::uint32_t floor = file.floor(); from > floor && omitted < kCountAhead;) {
      if (!file.in_line(--from)) continue;
      if (nearest) {
        ++omitted;
      } else if (clients_.alive(file.client(from))) {
        nearest = QueuedTicket{generation, from};
      } else {
        set_flag(file.record(from), RecordFlag::dead);
      }
    }
  };
  search(ticket.generation, ticket.index);
  const auto& lower = ticket.generation->lower;
  for (auto it = lower.rbegin(); it != lower.rend(); ++it) search(*it, (*it)->file->end());
  return nearest;
}

QueuedTicket LockQueue::behind(const QueuedTicket& ticket) {
  const auto first_from = [](const std::shared_ptr<Generation>& generation,
                             std::uint32_t from) -> QueuedTicket {
    QueueFile& file = *generation->file;
    for (std::uint32_t i = std::max(from, file.floor()); i < file.end(); ++i) {
      if (file.in_line(i)) return QueuedTicket{generation, i};
    }
    return {};
  };
  refresh(*ticket.generation);
  if (QueuedTicket found = first_from(ticket.generation, ticket.index + 1)) return found;
  // Rule 1: a client that waits for this ticket in a higher generation has sealed this one first.
  if (!ticket.generation->file->frozen()) return {};
  for (const auto& generation : load()) {
    if (generation->file->id() <= ticket.generation->file->id()) continue;
    if (QueuedTicket found = first_from(generation, 0)) return found;
  }
  return {};
}

QueuedTicket LockQueue::find(std::uint64_t rank) const {
  for (const auto& [id, generation] : generations_) {
    const QueueFile& file = *generation->file;
    if (file.has_header() && rank > file.first_token() && rank < file.token(file.end())) {
      return QueuedTicket{generation, static_cast<std::uint32_t>(rank - file.first_token())};
    }
  }
  return {};
}

bool LockQueue::someone_lives(Generation& generation) {
  QueueFile& file = *generation.file;
  for (std::uint32_t i = file.floor(); i < file.end(); ++i) {
    if (!file.in_line(i)) continue;
    if (clients_.alive(file.client(i))) return true;
    set_flag(file.record(i), RecordFlag::dead);
  }
  return false;
}

bool LockQueue::busy() {
  if (current_) refresh(*current_);
  // While our generation is not frozen, no ticket of a higher one can hold the lock (rule 2).
  if (current_ && !current_->file->frozen()) {
    const auto& lower = current_->lower;
    return someone_lives(*current_) || std::any_of(lower.begin(), lower.end(), [&](const auto& g) {
             return someone_lives(*g);
           });
  }
  const Listing listing = load();
  return std::any_of(listing.begin(), listing.end(),
                     [&](const auto& generation) { return someone_lives(*generation); });
}

std::vector<QueuedTicket> LockQueue::line() {
  std::vector<QueuedTicket> tickets;
  for (const auto& generation : load()) {
    QueueFile& file = *generation->file;
    for (std::uint32_t i = file.floor(); i < file.end(); ++i) {
      if (!file.in_line(i)) continue;
      if (clients_.alive(file.client(i))) {
        tickets.push_back({generation, i});
      } else {
        set_flag(file.record(i), RecordFlag::dead);
      }
    }
  }
  return tickets;
}

void LockQueue::prune() {
  if (!current_ || current_->lower.empty()) return;
  std::erase_if(current_->lower, [&](const std::shared_ptr<Generation>& lower) {
    if (!lower->file->drained()) return false;
    unlink(*lower->file);
    generations_.erase(lower->file->id());
    return true;
  });
}

void LockQueue::unlink(const QueueFile& file) noexcept {
  if (directory_.is_open()) ::unlinkat(directory_.get(), file.name().c_str(), 0);
}

bool LockQueue::remove_if_unused() {
  current_.reset();
  const Listing listing = load();
  // Look before sealing: a seal would force clients that use the queue into a new file.
  for (const auto& generation : listing) {
    if (someone_lives(*generation)) return false;
  }
  for (const auto& generation : listing) {
    QueueFile& file = *generation->file;
    if (!file.frozen() && file.reopen(directory_.get())) file.seal();
    if (someone_lives(*generation)) return false;
    unlink(file);
  }
  generations_.clear();
  if (!directory_.is_open()) return true;
  std::vector<std::string> unfinished;
  for_each_entry(directory_.get(), [&](std::string_view name) {
    if (name.starts_with(kUnfinished)) unfinished.emplace_back(name);
  });
  for (const std::string& name : unfinished) ::unlinkat(directory_.get(), name.c_str(), 0);
  directory_.remove();
  return true;
}

bool LockQueue::has_descriptors() const noexcept {
  return directory_.is_open() || (current_ && current_->file->has_descriptor());
}

void LockQueue::close_descriptors() noexcept {
  directory_.close();
  for (const auto& [id, generation] : generations_) generation->file->close_descriptor();
}

}  // namespace baton::file
