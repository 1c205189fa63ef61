// What a simulated store is to a simulation: something that clients reach, that has queues, and
// that fails in ways of its own.
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

// How one client reaches the store. Lives as long as the client.
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
  std::function<void()> on_beat;  // a heartbeat is about to be sent
};

class SimStore {
 public:
  virtual ~SimStore() = default;
  virtual std::unique_ptr<SimPort> connect(PortParts parts) = 0;

  // The truth, as the store would prove it now.
  virtual std::vector<SimEntry> entries(const internal::LockName& lock) const = 0;  // in order
  virtual std::uint64_t front(const internal::LockName& lock) const = 0;  // its token; 0: nobody

  // By the hand of an operator.
  virtual void evict(const internal::LockName& lock, const SimEntry& entry) = 0;
  virtual void end_session(std::uint64_t session) = 0;

  // Entries that went with a session which an operator ended.
  virtual bool forced(std::uint64_t) const { return false; }
  // One fault of the servers. False: this store has none.
  virtual bool strike() { return false; }
  virtual void heal() {}
  // The last fault that holders could notice is over by then.
  virtual Time troubled_until() const { return {}; }
  // Something that nobody should notice, in the best of times.
  virtual void ruffle() {}
  // Entries that the store took away although it had promised them (a bug of the server).
  virtual bool broke_promise(std::uint64_t) const { return false; }
  // The store was restored from a backup; this was its newest token before. 0: it was not.
  virtual std::uint64_t rolled_back_from() const { return 0; }
  // False: it cannot be set back. First it goes on a little, and is to be called again.
  virtual bool go_on() { return false; }
  virtual void forget_what_went_on() {}
  // What is left when nobody wants anything; "": nothing.
  virtual std::string left_over(std::size_t clients) const = 0;
  // How much longer than its timeout a session may last.
  virtual Nanos grace() const { return {}; }
  // How many watches told somebody that his turn may have come, since the last call.
  virtual std::uint64_t wake_ups() const { return 0; }
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
