// Rig: what the conformance cases need from a store. One page per store; the cases know no store.
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

// What a case may need beyond clients on a working store.
enum class Can {
  cross_processes,  // other processes see the same locks
  fork,             // a process that holds may fork
  end_sessions,     // the store ends sessions on demand
  cut,              // clients can be cut off, and joined again
  lose_answers,     // single answers can be lost or late
};

// THE table of what cannot be tested where. A case that needs something skips only by it.
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

  // What clients, also those of other processes, connect to. One store per rig, empty at first.
  virtual std::string url() const = 0;
  // What the observer connects to: never cut off.
  virtual std::string observer_url() const { return url(); }

  // An independent client.
  virtual Client open(ClientOptions options);

  // Seen from outside: by a client that takes no part.
  virtual std::size_t entries(std::string_view name);
  virtual std::size_t locks();
  // Removes exactly this entry, as an operator would. Returns when it is gone at the store.
  virtual bool remove_entry(std::string_view name, std::string_view entry_id);

  // Time as the clients of this store see it.
  virtual std::chrono::nanoseconds now() const;
  // Lets a little time pass.
  virtual void tick();
  // How many rounds a loop of this many takes here (slow stores do fewer).
  virtual int rounds(int full) const { return full; }

  // Faults, for rigs whose row in the table says so. Each returns when the fault has happened.
  virtual void end_sessions();
  virtual void cut();
  virtual void heal();
  virtual void lose_next_answer();
  virtual void delay_next_answer(std::chrono::milliseconds by);

 protected:
  Client& observer();
  // Rigs call it first in their destructor, while the store is still there.
  void close_observer() { observer_.reset(); }

 private:
  std::optional<Client> observer_;
};

// One store as the parameter of the suites.
struct RigKind {
  const char* name;
  std::unique_ptr<Rig> (*make)();
};
inline void PrintTo(const RigKind& kind, std::ostream* out) { *out << kind.name; }

}  // namespace baton::conformance
