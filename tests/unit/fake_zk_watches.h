// The fixture of the tests of zk::Watches.
#pragma once

#include "fake_zk.h"
#include "zk/watches.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::zk {

// Watches on one session of the fake ensemble, without the other parts of a Session.
class ZkWatchesTest : public ::testing::Test, private TransportListener {
 protected:
  ZkWatchesTest() : line(zk.make_transport(*this)) {
    outbox.attach(line.get());
    watches = std::make_unique<Watches>(loop, Watches::kBudget, [] { return nullptr; });
    watches->add_lane(outbox);
    wire().connect();
    for (const char* path : {"/a", "/b", "/own"}) zk.put(path);
  }

  FakeWire& wire() { return zk.wire(0); }
  void settle() { wire().settle(); }
  Texts sent() { return texts(wire().take_log()); }

  // Events are recorded as "<path> gone" or "<path> look".
  WatchId watch(const std::string& path, std::optional<std::string> mine = {}, bool soon = false) {
    WatchId id{};
    loop.step([&] { id = watch_here(path, std::move(mine), soon); });
    return id;
  }
  WatchId watch_here(const std::string& path, std::optional<std::string> mine = {},
                     bool soon = false) {
    return watches->watch(path, std::move(mine), soon, [this, path](WatchEvent event) {
      events.push_back(path + (event.kind == WatchEvent::gone ? " gone" : " look"));
    });
  }
  void unwatch(WatchId id) {
    loop.step([&] { watches->unwatch(id); });
  }

  ManualLoop loop;
  FakeZk zk{loop};
  std::unique_ptr<Transport> line;
  Outbox outbox;
  std::unique_ptr<Watches> watches;
  Texts events;

 private:
  void transport_connected(const Connection&) override { outbox.connected(); }
  void transport_disconnected() override { outbox.disconnected(); }
  void transport_ended(Status, const std::string&) override {}
  void transport_event(NodeEvent news, const std::string& path) override {
    watches->news(0, news, path);
  }
};

}  // namespace baton::zk
