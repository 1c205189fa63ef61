// A link to the fake cluster, which records the reports of the link.
#pragma once

#include "fake_etcd_client.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace baton::etcd {

class EtcdLinkTest : public ::testing::Test, protected LinkListener {
 protected:
  Link& make(const std::string& user = {}) {
    auto parts = fake_link_parts(loop, wire, cluster_state);
    parts.user = user;
    parts.password = "secret";
    LinkListener& listener = *this;
    link_ = std::make_unique<Link>(std::move(parts), listener);
    return *link_;
  }
  struct Heard {
    std::vector<Status> statuses;
    std::size_t endpoint = 99;
  };
  std::shared_ptr<Heard> range(const RequestOptions& how = {}) {
    etcdpb::RangeRequest request;
    request.set_key("k");
    request.set_serializable(!how.linearizable);
    return ask<etcdpb::RangeResponse>(Call::range, request, how);
  }
  std::shared_ptr<Heard> txn() {
    etcdpb::TxnRequest request;
    request.add_success()->mutable_request_delete_range()->set_key("k");
    return ask<etcdpb::TxnResponse>(Call::txn, request, {});
  }
  template <class Response, class Request>
  std::shared_ptr<Heard> ask(Call call, const Request& request, const RequestOptions& how) {
    auto heard = std::make_shared<Heard>();
    loop.step([&] {
      link_->ask<Response>(call, request, how, [heard](Reply<Response>& reply) {
        heard->statuses.push_back(reply.status);
        heard->endpoint = reply.endpoint;
      });
    });
    return heard;
  }
  static bool ok(const std::shared_ptr<Heard>& heard) {
    return heard->statuses == std::vector{Status::ok};
  }

  void link_left(std::size_t endpoint) override { left.push_back(endpoint); }
  void link_back() override { ++back; }
  void link_store_changed(const std::string& detail) override { changed.push_back(detail); }

  ManualLoop loop;
  FakeEtcd etcd{loop, 3};
  FakeEtcdWire wire{etcd};
  ClusterState cluster_state;
  std::vector<std::size_t> left;
  int back = 0;
  std::vector<std::string> changed;
  std::unique_ptr<Link> link_;
};

}  // namespace baton::etcd
