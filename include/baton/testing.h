// testing::MemoryStore: a store that fails on purpose, on virtual time, so that a program can test
// in milliseconds how it handles the loss of a lock.
#pragma once

#include <baton/version.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace baton::testing {

// While it lives, memory:NAME is this store. Unlike a plain memory: store it has a lease
// (ClientOptions::session_timeout), which the clients renew by heartbeats.
//
//   baton::testing::MemoryStore store("orders-test");
//   auto client = baton::Client::connect("memory:orders-test");
//   auto lock = client.mutex("orders/7").acquire();
//   store.expire_sessions();  // the store ends the session, as a real one would
//   assert(!lock.valid());
//
// Time is virtual: leases, heartbeats, delays and the timeouts of calls move by advance() alone. A
// call that waits for its timeout blocks until another thread advances the time. What does not
// depend on time (grants, releases, losses by expire_sessions()) happens at once, in real time.
// Stop callbacks and handlers run on the client's threads as ever: wait for them in the test.
//
// Create it before the clients and destroy it after them. Thread-safe.
class BATON_API MemoryStore {
 public:
  // Takes the name. Throws Error(invalid_argument) if the name is not 0 to 200 bytes of A-Z a-z 0-9
  // . _ -, or if another MemoryStore or a plain client uses memory:NAME now.
  explicit MemoryStore(std::string_view name);
  ~MemoryStore();  // memory:NAME is a plain store again, for clients that connect later
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  // Moves the virtual time, step by step, so that everything that becomes due happens in order, and
  // returns when it has been done. Throws Error(invalid_argument) for a negative duration.
  //
  //   store.disconnect();
  //   store.advance(std::chrono::seconds(10));  // the session timeout: the lock is lost
  //   assert(lock.state() == baton::LockState::lost);
  void advance(std::chrono::milliseconds by);
  // Returns the virtual time since the store was made.
  std::chrono::milliseconds now() const;

  // Ends all sessions at the store and notifies the clients. Returns when every client knows: locks
  // are lost with reason session_expired, and waiters join again. While disconnected the clients
  // cannot be notified: they notice by their deadlines, as time is advanced.
  void expire_sessions();

  // Cuts all clients off: requests, answers and notifications are lost until reconnect().
  // Heartbeats fail, so that a lock becomes suspect and then lost as time is advanced.
  void disconnect();
  // Ends the cut. The clients notice at their next heartbeat or retry, as time is advanced.
  void reconnect();

  // Loses one answer of the store, or delivers it later by this much. The request itself is carried
  // out. Heartbeats and the opening of sessions do not count. Calls add up: the first one is for
  // the next answer, the second one for the answer after it. The delay is virtual time.
  // delay_next_answer() throws Error(invalid_argument) for a negative duration.
  void drop_next_answer();
  void delay_next_answer(std::chrono::milliseconds by);

  // Removes an entry, as an operator could; entry_id as in Client::inspect(). Returns when its
  // client knows (a holder's lock is lost with reason evicted). False: there is no such entry.
  // Throws Error(invalid_name) if `lock` is not a lock name.
  bool remove_entry(std::string_view lock, std::string_view entry_id);
  // The same for the entry that holds the lock.
  bool remove_holder(std::string_view lock);

  // Return how many entries the queue of this lock has, and how many sessions are open, as the
  // store sees it.
  std::size_t entries(std::string_view lock) const;
  std::size_t sessions() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::testing
