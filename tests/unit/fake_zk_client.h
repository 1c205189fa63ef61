// The Session of one client on the fake ensemble, called as the engine calls it.
#pragma once

#include "fake_client.h"
#include "fake_zk.h"
#include "zk/session.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::zk {

// The minimum that a session needs.
inline SessionParts fake_zk_parts(FakeZk& zk, std::string client_id) {
  SessionParts parts;
  parts.loop = &zk.loop();
  parts.make_transport = [&zk](TransportListener& listener) { return zk.make_transport(listener); };
  parts.root = "/app";
  parts.client_id = std::move(client_id);
  parts.log = [](LogLevel, std::string_view) {};
  return parts;
}

// Where the connection breaks. Each cut counts the deliveries since the previous cut (a request
// that reaches the server, or an answer that reaches the client) and replaces the next delivery.
struct CutPlan {
  std::vector<int> cuts;
  bool rest_reaches_server = false;  // the server executes what was sent before the cut
  bool answers_first = false;        // each request is answered before the next one is delivered
  bool behind = false;               // the next server knows only what the client has seen
};

class FakeZkClient final : public FakeClient<Session> {
 public:
  struct Setup {
    std::string root = "/app";
    std::string client_id = "AAAAAAAA";
    bool permanent_parents = false;
    std::size_t watch_budget = Watches::kBudget;
    std::size_t most_strange = 10'000;
    bool open = true;
  };

  explicit FakeZkClient(FakeZk& zk) : FakeZkClient(zk, Setup()) {}
  FakeZkClient(FakeZk& zk, Setup setup)
      : FakeClient(zk.loop()), zk_(zk), setup_(std::move(setup)), first_(zk.wires()) {
    SessionParts parts = fake_zk_parts(zk, setup_.client_id);
    parts.root = setup_.root;
    parts.label = "label of " + setup_.client_id;
    parts.permanent_parents = setup_.permanent_parents;
    parts.watch_budget = setup_.watch_budget;
    parts.most_strange = setup_.most_strange;
    opened = ask<Done>([&](Answer<Done> answer) {
      SessionListener& listener = *this;
      session_ = std::make_unique<Session>(std::move(parts), listener, std::move(answer));
    });
    if (!setup_.open) return;
    wire().connect();
    wire().settle();
    EXPECT_TRUE(opened->ok());
    wire().take_log();
  }

  FakeWire& wire() { return zk_.wire(first_); }

  // Delivers everything, and expects that the request is answered.
  template <class T>
  AskedPtr<T> settled(AskedPtr<T> asked) {
    wire().settle();
    EXPECT_TRUE(asked->got) << "never answered";
    return asked;
  }

  // ---- our nodes

  std::string id(std::uint64_t nonce) const {
    return format_entry_id(setup_.client_id, Nonce{nonce});
  }
  std::vector<std::string> entries() { return zk_.entries_of(wire().session()); }

  // ---- with cuts

  void plan(CutPlan plan) {
    plan_ = std::move(plan);
    delivered_ = 0;
  }
  bool all_cut() const { return plan_.cuts.empty(); }
  // Does one step: a delivery, a cut that is due, or a new connection. False: nothing is left to
  // do.
  bool move() {
    if (!wire().connected()) {
      zk_.loop().advance(std::chrono::milliseconds(10));
      if (plan_.behind) {
        wire().connect_behind();
      } else {
        wire().connect();
      }
      return true;
    }
    if (wire().idle()) return false;
    if (!plan_.cuts.empty() && delivered_++ == plan_.cuts.front()) {
      plan_.cuts.erase(plan_.cuts.begin());
      delivered_ = 0;
      if (plan_.rest_reaches_server) {
        wire().cut_after_requests();
      } else {
        wire().cut();
      }
      return true;
    }
    const bool answer = wire().answers() != 0 && (plan_.answers_first || wire().requests() == 0);
    return answer ? wire().deliver_answer() : wire().deliver_request();
  }
  void move_until_idle() {
    for (int n = 0; move() || !wire().connected(); ++n) ASSERT_LT(n, 10'000);
  }
  // Repeats a request under the same nonce after transient errors, as the engine does.
  template <class F>
  auto persist(F question) {
    auto asked = question();
    for (int n = 0; n < 10'000; ++n) {
      if (asked->got && (asked->ok() || !transient(asked->error()))) break;
      if (asked->got) asked = question();
      if (!asked->got && !move()) break;
    }
    EXPECT_TRUE(asked->got) << "never answered";
    return asked;
  }

  AskedPtr<Done> opened;

 private:
  FakeZk& zk_;
  const Setup setup_;
  const std::size_t first_;
  CutPlan plan_;
  int delivered_ = 0;
};

}  // namespace baton::zk
