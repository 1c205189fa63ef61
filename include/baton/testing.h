// A store that fails on purpose, on virtual time, so that you can test how *your* program loses a
// lock, in milliseconds:
//
//   baton::testing::MemoryStore store("orders-test");
//   auto client = baton::Client::connect("memory:orders-test");
//   auto lock = client.mutex("orders/7").acquire();
//   store.expire_sessions();          // the store ends the session, as a real one would
//   assert(!lock.valid());
#pragma once

#include <baton/version.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace baton::testing {

// While it lives, memory:NAME is this store: sessions have a lease (ClientOptions::session_timeout,
// renewed by heartbeats), and time is virtual: leases, heartbeats, delays and the timeouts of
// acquires move by advance() alone. Create it before the clients, destroy it after them; a second
// one of the same name throws Error(invalid_argument), and so does a name that plain clients use
// already. Thread-safe.
class BATON_API MemoryStore {
 public:
  explicit MemoryStore(std::string_view name);
  ~MemoryStore();
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  // Moves virtual time on, step by step, so that everything due on the way happens in its order.
  // Returns when all of it has been done.
  void advance(std::chrono::milliseconds by);
  std::chrono::milliseconds now() const;

  // Ends all sessions at the store and tells the clients. Returns when every client knows: holds
  // are lost, waiters are joining again.
  void expire_sessions();

  // Cuts all clients off: requests and answers are lost until reconnect(). Heartbeats fail, so a
  // hold becomes suspect and then lost as you advance().
  void disconnect();
  void reconnect();

  // The next answer of the store (heartbeats do not count) is lost, or comes this much later. The
  // request itself is carried out. Calls add up: two calls, two answers.
  void drop_next_answer();
  void delay_next_answer(std::chrono::milliseconds by);

  // Removes an entry as an operator would; entry_id as in Client::inspect(). False: no such entry.
  // Returns when its client knows.
  bool remove_entry(std::string_view lock, std::string_view entry_id);
  // The same for the holder of the lock.
  bool remove_holder(std::string_view lock);

  // What the store holds now.
  std::size_t entries(std::string_view lock) const;
  std::size_t sessions() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::testing
