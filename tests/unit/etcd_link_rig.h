// A link to the fake cluster, and what it says.
#pragma once

#include "fake_etcd_client.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace baton::internal {

class EtcdLinkTest : public ::testing::Test, protected EtcdLinkListener {
 protected:
  EtcdLink& make(const std::string& user = {}) {
    auto parts = fake_link_parts(loop, wire, atlas);
    parts.user = user;
    parts.password = "secret";
    EtcdLinkListener& listener = *this;
    link_ = std::make_unique<EtcdLink>(std::move(parts), listener);
    return *link_;
  }
  struct Heard {
    std::vector<EtcdStatus> statuses;
    std::size_t endpoint = 99;
  };
  std::shared_ptr<Heard> range(const EtcdHow& how = {}) {
    etcdpb::RangeRequest request;
    request.set_key("k");
    request.set_serializable(!how.fresh);
    return ask<etcdpb::RangeResponse>(EtcdCall::range, request, how);
  }
  std::shared_ptr<Heard> txn() {
    etcdpb::TxnRequest request;
    request.add_success()->mutable_request_delete_range()->set_key("k");
    return ask<etcdpb::TxnResponse>(EtcdCall::txn, request, {});
  }
  template <class Response, class Request>
  std::shared_ptr<Heard> ask(EtcdCall call, const Request& request, const EtcdHow& how) {
    auto heard = std::make_shared<Heard>();
    loop.step([&] {
      link_->ask<Response>(call, request, how, [heard](EtcdReply<Response>& reply) {
        heard->statuses.push_back(reply.status);
        heard->endpoint = reply.endpoint;
      });
    });
    return heard;
  }
  static bool ok(const std::shared_ptr<Heard>& heard) {
    return heard->statuses == std::vector{EtcdStatus::ok};
  }

  void link_left(std::size_t endpoint) override { left.push_back(endpoint); }
  void link_back() override { ++back; }
  void link_store_changed(const std::string& detail) override { changed.push_back(detail); }

  ManualLoop loop;
  FakeEtcd etcd{loop, 3};
  FakeEtcdWire wire{etcd};
  EtcdAtlas atlas;
  std::vector<std::size_t> left;
  int back = 0;
  std::vector<std::string> changed;
  std::unique_ptr<EtcdLink> link_;
};

}  // namespace baton::internal
