// The interface between a simulation and a simulated store. Clients open sessions on the store, the
// store has queues, and it has its own kinds of faults.
#pragma once

#include "common/seam/session.h"
#include "quirks.h"
#include "sim_loop.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace baton::sim {

struct SimEntry {
  std::string id;
  std::uint64_t token = 0;
  std::uint64_t session = 0;
};

// The access of one client to the store. It lives as long as the client.
class SimPort {
 public:
  virtual ~SimPort() = default;
  virtual void open(internal::SessionListener& listener,
                    internal::Answer<std::unique_ptr<internal::Session>> answer) = 0;
};

struct PortParts {
  std::shared_ptr<SimLoop> loop;
  std::shared_ptr<Life> life;
  const Weather* weather;
  int number;
  std::function<void()> on_beat;  // called just before a heartbeat is sent
};

class SimStore {
 public:
  virtual ~SimStore() = default;
  virtual std::unique_ptr<SimPort> connect(PortParts parts) = 0;

  // The committed state of the store at this moment.
  // In queue order.
  virtual std::vector<SimEntry> entries(const internal::LockName& lock) const = 0;
  // Token of the first entry; 0: none.
  virtual std::uint64_t front(const internal::LockName& lock) const = 0;

  // Actions of an operator.
  virtual void evict(const internal::LockName& lock, const SimEntry& entry) = 0;
  virtual void end_session(std::uint64_t session) = 0;

  // Whether the entry with this token went because an operator ended its session.
  virtual bool forced(std::uint64_t) const { return false; }
  // Causes one fault of the servers. False: it caused none.
  virtual bool strike() { return false; }
  virtual void heal() {}
  // The time at which the last server fault that a holder may notice is over.
  virtual Time troubled_until() const { return {}; }
  // Causes an event that no client should notice, even in calm weather.
  virtual void ruffle() {}
  // Whether the store removed the entry with this token although its session was alive (a server
  // bug).
  virtual bool broke_promise(std::uint64_t) const { return false; }
  // The newest token before the store was restored from a backup. 0: it was not restored.
  virtual std::uint64_t rolled_back_from() const { return 0; }
  // Remembers the state of the store, then writes some more. False: this store cannot be set back.
  // forget_what_went_on() restores the state that the last call remembered.
  virtual bool go_on() { return false; }
  virtual void forget_what_went_on() {}
  // Describes an entry, a watch or a session that is left when no client wants a lock. Empty:
  // nothing is left.
  virtual std::string left_over(std::size_t clients) const = 0;
  // How much longer than its timeout the session of a dead client may last.
  virtual Nanos grace() const { return {}; }
  // How many watch events the store has sent so far.
  virtual std::uint64_t wake_ups() const { return 0; }
  // For the seeded bug token_is_position: the position at which the entry with this token was first
  // seen. A store that has no such tokens returns the token.
  virtual std::uint64_t token_by_position(const internal::LockName&, std::uint64_t token) const {
    return token;
  }
};

struct StoreParts {
  World& world;
  std::vector<internal::LockName> locks;
  std::chrono::milliseconds timeout;
  Quirks quirks;
};
std::unique_ptr<SimStore> make_memory_store(StoreParts parts);
std::unique_ptr<SimStore> make_zk_store(StoreParts parts);
std::unique_ptr<SimStore> make_etcd_store(StoreParts parts);

}  // namespace baton::sim
