// Rig: the interface to the store under test. Each store has its own implementation, and the
// conformance cases use only this interface.
#pragma once

#include <baton/baton.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

namespace baton::conformance {

// What a case may need in addition to clients and a working store.
enum class Can {
  cross_processes,  // other processes see the same locks
  fork,             // a process that holds a lock may fork
  end_sessions,     // the rig can end sessions
  cut,              // clients can be disconnected from the store and connected again
  lose_answers,     // a single answer of the store can be lost or delayed
};

// One row of the table in rig.cpp: what this rig can do. A case may be skipped only because of this
// table: see BATON_NEEDS.
struct RigTraits {
  std::string_view rig;
  bool cross_processes;
  bool fork;
  bool end_sessions;
  bool cut;
  bool lose_answers;
};
const RigTraits& traits_of(std::string_view rig);
bool can(std::string_view rig, Can what);
std::string_view to_text(Can what);

class Rig {
 public:
  virtual ~Rig() = default;

  // The URL for clients, also for clients in other processes. Each rig has its own store, or its
  // own root in a shared store, which is empty at first.
  virtual std::string url() const = 0;
  // The URL for the observer. cut() does not affect it.
  virtual std::string observer_url() const { return url(); }

  // Opens a client with its own session.
  virtual Client open(ClientOptions options);

  // Return the number of entries of a lock, and the number of locks that have entries. The default
  // implementations ask through the observer, a client that joins no queue.
  virtual std::size_t entries(std::string_view name);
  virtual std::size_t locks();
  // Removes this entry, as an operator would. Returns when the store has removed it. False: there
  // is no such entry.
  virtual bool remove_entry(std::string_view name, std::string_view entry_id);

  // The time on the clock of the clients. It is virtual on a virtual store.
  virtual std::chrono::nanoseconds now() const;
  // Lets a little time pass.
  virtual void tick();
  // How many rounds a test loop makes on this store. Fast stores make `full` rounds, slow stores
  // fewer.
  virtual int rounds(int full) const { return full; }

  // Faults, for rigs whose row in the table allows them. Each call returns when the fault is in
  // effect.
  virtual void end_sessions();
  virtual void cut();
  virtual void heal();
  virtual void lose_next_answer();
  virtual void delay_next_answer(std::chrono::milliseconds by);

 protected:
  Client& observer();
  // A rig calls this first in its destructor, while the store still exists.
  void close_observer() { observer_.reset(); }

 private:
  std::optional<Client> observer_;
};

// The parameter of the suites: the rig of one store.
struct RigKind {
  const char* name;
  std::unique_ptr<Rig> (*make)();
};
inline void PrintTo(const RigKind& kind, std::ostream* out) { *out << kind.name; }

}  // namespace baton::conformance
