// The values of the recipe: names, nonces, tickets, queues. No behaviour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::internal {

// A lock name that has been checked (lock_name.h makes them). Strong, so that it is never swapped
// with another string.
class LockName {
 public:
  const std::string& text() const noexcept { return text_; }
  auto operator<=>(const LockName&) const = default;

 private:
  friend class LockNameMaker;
  explicit LockName(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// Our name for a ticket before the store has answered. Unique within a client for its whole life:
// a ticket is never adopted by a later attempt.
enum class Nonce : std::uint64_t {};

// One place in one queue.
struct Ticket {
  std::uint64_t rank = 0;     // order within the queue, as the store serialised it
  std::string id;             // the store's name for it, as shown to operators
  std::optional<Nonce> ours;  // set if it belongs to this session
};

// One reading of a queue, ascending by rank: some tickets directly ahead of mine, and mine.
struct QueueView {
  std::vector<Ticket> tickets;
  std::size_t omitted_ahead = 0;  // how many more stand before tickets.front()
};

// Tells without I/O, from any thread, whether a ticket was removed by force. noexcept, lock-free.
class TicketSign {
 public:
  virtual ~TicketSign() = default;
  virtual bool evicted() const noexcept = 0;
};

// The answer to join and look: where I stand.
struct Standing {
  std::uint64_t token = 0;  // fencing token of my ticket; valid if my ticket is in the view
  QueueView view;           // without my ticket in it: the ticket is gone
  std::shared_ptr<const TicketSign> sign;  // may be null
};

}  // namespace baton::internal
