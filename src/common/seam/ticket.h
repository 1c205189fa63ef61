// The values of the recipe: lock names, nonces, tickets, readings of queues. No behaviour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::internal {

// A lock name that has been checked (made by parse_lock_name()). A type of its own, so that the
// compiler refuses another string in its position.
class LockName {
 public:
  const std::string& text() const noexcept { return text_; }
  auto operator<=>(const LockName&) const = default;

 private:
  friend class LockNameMaker;
  explicit LockName(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// The client's own name for a ticket, known before the store has answered. A client never uses a
// nonce twice, so a later attempt cannot adopt an earlier ticket.
enum class Nonce : std::uint64_t {};

// A position in a queue.
struct Ticket {
  std::uint64_t rank = 0;     // order within the queue, decided by the store
  std::string id;             // the store's name for it, as shown to operators
  std::optional<Nonce> ours;  // set if it belongs to this session
};

// A reading of a queue, in ascending order of rank: the client's own ticket, and some tickets
// directly ahead of it.
struct QueueView {
  std::vector<Ticket> tickets;
  std::size_t omitted_ahead = 0;  // how many more tickets are ahead of tickets.front()
};

// Tells without I/O, from any thread, whether a ticket was evicted. noexcept, lock-free.
class TicketSign {
 public:
  virtual ~TicketSign() = default;
  virtual bool evicted() const noexcept = 0;
};

// The answer to join and look: where the client's own ticket stands.
struct Standing {
  std::uint64_t token = 0;  // fencing token of the own ticket; valid if the view has that ticket
  QueueView view;           // if it does not have the own ticket, the ticket is gone
  std::shared_ptr<const TicketSign> sign;  // may be null
};

}  // namespace baton::internal
