// The Session of one client on the fake cluster, called as the engine calls it.
#pragma once

#include "etcd/session.h"
#include "fake_client.h"
#include "fake_etcd_wire.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::etcd {

using Texts = std::vector<std::string>;

inline LinkParts fake_link_parts(ManualLoop& loop, Transport& wire, ClusterState& cluster_state) {
  LinkParts parts;
  parts.loop = &loop;
  parts.transport = &wire;
  parts.cluster_state = &cluster_state;
  parts.try_timeout = std::chrono::milliseconds(1'000);
  parts.log = [](LogLevel, std::string_view) {};
  return parts;
}

class FakeEtcdClient final : public FakeClient<Session> {
 public:
  struct Setup {
    std::string root = "/app";
    std::string user{};
    std::string password = "secret";
    std::chrono::milliseconds session_timeout{6'000};
    bool open = true;
  };

  explicit FakeEtcdClient(FakeEtcd& etcd) : FakeEtcdClient(etcd, Setup()) {}
  FakeEtcdClient(FakeEtcd& etcd, Setup setup)
      : FakeClient(manual_loop(etcd)), wire(etcd), etcd_(etcd), setup_(std::move(setup)) {
    SessionParts parts;
    parts.link = fake_link_parts(manual_loop(etcd), wire, cluster_state);
    parts.link.user = setup_.user;
    parts.link.password = setup_.password;
    parts.root = setup_.root;
    parts.label = "the label";
    parts.session_timeout = setup_.session_timeout;
    SessionListener& listener = *this;
    session_ = std::make_unique<Session>(std::move(parts), listener, [this](Result<Done> done) {
      opened.push_back(std::move(done));
    });
    if (!setup_.open) return;
    pass();
    EXPECT_EQ(opened.size(), 1u);
    EXPECT_TRUE(opened.at(0));
    wire.take_log();
    wire.take_stream_log();
  }

  ~FakeEtcdClient() override { session_.reset(); }  // the session uses the wire

  void pass(Nanos span = std::chrono::milliseconds(20)) {
    loop().step(nullptr);
    loop().advance(span);
  }

  // Lets time pass until the request is answered.
  template <class T>
  AskedPtr<T> settled(AskedPtr<T> asked) {
    for (int n = 0; n < 20'000 && !asked->got; ++n) pass(std::chrono::milliseconds(1));
    EXPECT_TRUE(asked->got) << "never answered";
    return asked;
  }
  std::vector<std::string> keys(const std::string& lock = "job") {
    return etcd_.keys((setup_.root.empty() ? "" : setup_.root + "/") + lock + "/");
  }

  FakeEtcdWire wire;
  ClusterState cluster_state;
  std::vector<Result<Done>> opened;

 private:
  FakeEtcd& etcd_;
  const Setup setup_;
};

}  // namespace baton::etcd
