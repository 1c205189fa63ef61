// The leases of one session on the fake etcd.
#pragma once

#include "etcd/leases.h"
#include "fake_etcd_client.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace baton::etcd {

class EtcdLeasesFixture : public ::testing::Test, protected LinkListener, protected LeasesListener {
 protected:
  static constexpr std::chrono::milliseconds kTtl{12'000};

  EtcdLeasesFixture() {
    LinkListener& link_listener = *this;
    LeasesListener& listener = *this;
    link = std::make_unique<Link>(fake_link_parts(loop, wire, cluster_state), link_listener);
    leases = std::make_unique<Leases>(loop, *link, kTtl, listener);
  }
  std::int64_t room() {
    std::int64_t id = 0;
    loop.step([&] {
      leases->reserve_slot([&id](const Result<std::int64_t>& lease) { id = lease ? *lease : -1; });
    });
    for (int n = 0; n < 10'000 && id == 0; ++n) loop.advance(std::chrono::milliseconds(1));
    return id;
  }
  std::int64_t key() {
    const auto id = room();
    loop.step([&] { leases->key_added(id); });
    return id;
  }
  void step(Task task) { loop.step(std::move(task)); }
  Time due(Time sent) const { return lease_deadline(sent, kTtl); }

  void link_left(std::size_t) override {}
  void link_back() override {}
  void link_store_changed(const std::string&) override {}
  void leases_renewed() override { ++renewed; }
  void leases_lost(const std::string& detail) override { lost.push_back(detail); }
  void lease_revoked(std::int64_t lease) override { revoked.push_back(lease); }

  ManualLoop loop;
  FakeEtcd etcd{loop, 3};
  FakeEtcdWire wire{etcd};
  ClusterState cluster_state;
  std::unique_ptr<Link> link;
  std::unique_ptr<Leases> leases;
  int renewed = 0;
  std::vector<std::string> lost;
  std::vector<std::int64_t> revoked;
};

}  // namespace baton::etcd
