// The watches of one session on the fake etcd.
#pragma once

#include "etcd/watches.h"
#include "fake_etcd_client.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace baton::etcd {

class EtcdWatchesFixture : public ::testing::Test, protected LinkListener {
 protected:
  EtcdWatchesFixture() { make(); }
  void make(const std::string& user = {}) {
    LinkListener& listener = *this;
    watches.reset();
    auto parts = fake_link_parts(loop, wire, cluster_state);
    parts.user = user;
    parts.password = "secret";
    link = std::make_unique<Link>(std::move(parts), listener);
    watches = std::make_unique<Watches>(loop, *link);
  }
  struct Heard {
    std::vector<WatchNews> news;
    WatchId id = WatchId::none;
    bool quiet() const { return news.empty(); }
    bool gone() const { return news.size() == 1 && news[0].gone; }
  };
  using HeardPtr = std::shared_ptr<Heard>;
  HeardPtr watch(const std::string& key, std::int64_t created, std::int64_t known,
                 bool from_known = false, Nanos delay = {}) {
    auto heard = std::make_shared<Heard>();
    loop.step([&] {
      heard->id = watches->watch({key, created, known, from_known, delay},
                                 [heard](const WatchNews& news) { heard->news.push_back(news); });
    });
    return heard;
  }
  // Creates a key and watches it at once.
  HeardPtr watch_new(const std::string& key) {
    const auto created = etcd.put(key);
    return watch(key, created, created);
  }
  void pass(Nanos span = std::chrono::milliseconds(10)) { loop.advance(span); }

  void link_left(std::size_t endpoint) override { watches->leave(endpoint); }
  void link_back() override {}
  void link_store_changed(const std::string&) override {}

  ManualLoop loop;
  FakeEtcd etcd{loop, 3};
  FakeEtcdWire wire{etcd};
  ClusterState cluster_state;
  std::unique_ptr<Link> link;
  std::unique_ptr<Watches> watches;
};

}  // namespace baton::etcd
