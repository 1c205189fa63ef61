// One process on the fake etcd.
#pragma once

#include "fake_etcd_client.h"
#include "fake_process.h"

#include <memory>
#include <utility>

namespace baton::etcd {

// The connection of a process to the cluster. It is the first base, so it outlives FakeProcess.
struct FakeEtcdReach {
  explicit FakeEtcdReach(FakeEtcd& etcd) : wire(etcd) {}
  FakeEtcdWire wire;
  ClusterState cluster_state;
};

class FakeEtcdProcess final : public FakeEtcdReach, public FakeProcess {
 public:
  FakeEtcdProcess(FakeEtcd& etcd, HoldJudge& judge, int number)
      : FakeEtcdReach(etcd),
        FakeProcess(manual_loop(etcd), judge, number, SessionOpening::Accept::final_result,
                    [this, &etcd](auto& listener, auto opened) {
                      SessionParts parts;
                      parts.link = fake_link_parts(manual_loop(etcd), wire, cluster_state);
                      parts.link.try_timeout = std::chrono::milliseconds(500);
                      parts.root = "/app";
                      parts.session_timeout = std::chrono::seconds(2);
                      return std::make_unique<Session>(std::move(parts), listener,
                                                       std::move(opened));
                    }) {}
};

}  // namespace baton::etcd
