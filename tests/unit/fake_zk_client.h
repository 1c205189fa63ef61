// One client's Session on the fake ensemble, asked the way the engine asks.
#pragma once

#include "common/seam/lock_name.h"
#include "fake_zk.h"
#include "zk/session.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::zk {

inline LockName lock_name(const std::string& text) { return parse_lock_name(text).value(); }

// What became of a question.
template <class T>
struct Asked {
  std::optional<Result<T>> got;
  int answers = 0;
  bool ok() const { return got && got->has_value(); }
  const T& value() const { return got.value().value(); }
  const Error& error() const { return got.value().error(); }
};
template <class T>
using AskedPtr = std::shared_ptr<Asked<T>>;

// Where the connection breaks: each cut counts deliveries (a request that reaches the server, an
// answer that reaches the client) since the one before; that delivery does not happen.
struct CutPlan {
  std::vector<int> cuts;
  bool rest_reaches_server = false;  // what else was sent before the cut is carried out
  bool answers_first = false;        // each request is answered before the next one is delivered
  bool behind = false;               // the next server knows no more than we have seen
};

class FakeZkClient final : private SessionListener {
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
  FakeZkClient(FakeZk& zk, Setup setup) : zk_(zk), setup_(std::move(setup)), first_(zk.wires()) {
    SessionParts parts;
    parts.loop = &zk.loop();
    parts.make_transport = [&zk](TransportListener& listener) {
      return zk.make_transport(listener);
    };
    parts.root = setup_.root;
    parts.client_id = setup_.client_id;
    parts.label = "label of " + setup_.client_id;
    parts.permanent_parents = setup_.permanent_parents;
    parts.watch_budget = setup_.watch_budget;
    parts.most_strange = setup_.most_strange;
    parts.log = [](LogLevel, std::string_view) {};
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
  Session& session() { return *session_; }
  void destroy() {
    zk_.loop().step([&] { session_.reset(); });
  }
  ManualLoop& loop() { return zk_.loop(); }

  // ---- questions; an answer inside the call, or a second one, fails the test

  template <class T, class F>
  AskedPtr<T> ask(F question) {
    auto asked = std::make_shared<Asked<T>>();
    auto inside = std::make_shared<bool>(true);
    zk_.loop().step([&] {
      question(Answer<T>([asked, inside](Result<T> result) {
        EXPECT_FALSE(*inside) << "answered inside the call";
        EXPECT_EQ(++asked->answers, 1) << "answered twice";
        asked->got.emplace(std::move(result));
      }));
      *inside = false;
    });
    return asked;
  }
  AskedPtr<Standing> join(std::uint64_t nonce, const std::string& lock = "job") {
    return ask<Standing>(
        [&](auto a) { session_->join(lock_name(lock), Nonce{nonce}, std::move(a)); });
  }
  AskedPtr<Standing> look(std::uint64_t nonce, const std::string& lock = "job") {
    return ask<Standing>(
        [&](auto a) { session_->look(lock_name(lock), Nonce{nonce}, {}, std::move(a)); });
  }
  AskedPtr<bool> peek(const std::string& lock = "job") {
    return ask<bool>([&](auto a) { session_->peek(lock_name(lock), std::move(a)); });
  }
  AskedPtr<bool> verify(std::uint64_t nonce, const std::string& lock = "job") {
    return ask<bool>(
        [&](auto a) { session_->verify(lock_name(lock), Nonce{nonce}, std::move(a)); });
  }
  AskedPtr<WithdrawResult> withdraw(std::uint64_t nonce, const std::string& lock = "job") {
    return ask<WithdrawResult>(
        [&](auto a) { session_->withdraw(lock_name(lock), Nonce{nonce}, std::move(a)); });
  }
  AskedPtr<LockSnapshot> inspect(const std::string& lock = "job") {
    return ask<LockSnapshot>([&](auto a) { session_->inspect(lock_name(lock), std::move(a)); });
  }
  AskedPtr<std::vector<std::string>> list(const std::string& prefix = "") {
    return ask<std::vector<std::string>>([&](auto a) { session_->list(prefix, std::move(a)); });
  }
  AskedPtr<bool> evict(const std::string& entry, const std::string& lock = "job") {
    return ask<bool>([&](auto a) { session_->evict(lock_name(lock), entry, std::move(a)); });
  }
  AskedPtr<Done> close() {
    return ask<Done>([&](auto a) { session_->close(std::move(a)); });
  }
  // Asks and lets everything arrive.
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
  // One delivery, or the cut that is due, or a new connection. False: there is nothing to do.
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
  // As the engine does it: again under the same nonce, as long as the trouble passes by itself.
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
  std::vector<std::pair<std::error_code, std::string>> ended;
  int resumed = 0;

 private:
  void session_ended(std::error_code reason, const std::string& detail) override {
    ended.emplace_back(reason, detail);
  }
  void session_resumed() override { ++resumed; }

  FakeZk& zk_;
  const Setup setup_;
  const std::size_t first_;
  CutPlan plan_;
  int delivered_ = 0;
  std::unique_ptr<Session> session_;
};

}  // namespace baton::zk
