// The transport from a simulated client to a FakeEtcd. Calls are lost or arrive late, streams
// break, and members are stopped or down.
#pragma once

#include "fakes/fake_etcd.h"
#include "sim_pipe.h"
#include "sim_store.h"

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace baton::sim {

inline constexpr std::size_t kMembers = 3;

// The state of the members, which all clients share.
class EtcdMembers {
 public:
  // Runs the task at a member. Tasks for a stopped member wait until the member is resumed.
  void at(std::size_t member, Task task);
  void stop(std::size_t member) { all_[member].stopped = true; }
  void resume(std::size_t member);
  bool stopped(std::size_t member) const { return all_[member].stopped; }
  void set_down(std::size_t member, bool down) { all_[member].down = down; }
  bool down(std::size_t member) const { return all_[member].down; }
  // The newest revision of any answer, also if the store was set back since.
  std::int64_t newest_revision = 0;

 private:
  struct Member {
    bool stopped = false;
    bool down = false;
    std::deque<Task> inbox;
  };
  std::array<Member, kMembers> all_;
};

class SimEtcdWire final : public etcd::Transport {
 public:
  SimEtcdWire(World& world, PortParts parts, etcd::FakeEtcd& etcd, EtcdMembers& members,
              const Quirks& quirks, Nanos timeout);
  ~SimEtcdWire() override;

  std::size_t endpoints() const override { return kMembers; }
  std::string endpoint(std::size_t i) const override { return "member" + std::to_string(i); }
  bool unreachable(std::size_t i) override { return members_.down(i); }
  void renew(std::size_t) override {}
  void ask(std::size_t endpoint, etcd::Call call, const etcd::Message& request,
           std::unique_ptr<etcd::Message> response, const etcd::CallOptions& options,
           etcd::CallAnswer answer, Task* cancel) override;
  std::unique_ptr<etcd::Stream> open(std::size_t endpoint, etcd::StreamKind flow,
                                     const std::string& token,
                                     etcd::StreamListener& listener) override;
  void break_streams(std::size_t member);  // because it is down

 private:
  struct Call;
  class SimStream;
  class Handle;
  void finish(const std::shared_ptr<Call>& call, const etcd::CallResult& verdict);

  World& world_;
  const PortParts parts_;
  etcd::FakeEtcd& etcd_;
  EtcdMembers& members_;
  const Quirks& quirks_;
  const Nanos timeout_;
  std::vector<std::weak_ptr<SimStream>> streams_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace baton::sim
