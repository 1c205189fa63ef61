// One client's Session on the fake cluster, asked the way the engine asks.
#pragma once

#include "common/seam/lock_name.h"
#include "etcd/session.h"
#include "fake_etcd_wire.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::etcd {

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

class FakeEtcdClient final : private SessionListener {
 public:
  struct Setup {
    std::string root = "/app";
    std::string user{};
    std::string password = "secret";
    std::chrono::milliseconds session_timeout{6'000};
    bool open = true;
  };

  explicit FakeEtcdClient(FakeEtcd& etcd) : FakeEtcdClient(etcd, Setup()) {}
  FakeEtcdClient(FakeEtcd& etcd, Setup setup) : wire(etcd), etcd_(etcd), setup_(std::move(setup)) {
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

  Session& session() { return *session_; }
  void destroy() {
    manual_loop(etcd_).step([&] { session_.reset(); });
  }
  ManualLoop& loop() { return manual_loop(etcd_); }
  void pass(Nanos span = std::chrono::milliseconds(20)) {
    loop().step(nullptr);
    loop().advance(span);
  }

  // ---- questions; an answer inside the call, or a second one, fails the test

  template <class T, class F>
  AskedPtr<T> ask(F question) {
    auto asked = std::make_shared<Asked<T>>();
    auto inside = std::make_shared<bool>(true);
    loop().step([&] {
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
    // As the engine does: the first look after an event gets the hint of that event.
    const auto hint = std::exchange((*hints_)[Nonce{nonce}], {});
    return ask<Standing>(
        [&](auto a) { session_->look(lock_name(lock), Nonce{nonce}, hint, std::move(a)); });
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
  // For the next question.
  void wanted_for(Nanos time) { session_->wanted_until(loop().now() + time); }
  AskedPtr<bool> evict(const std::string& entry, const std::string& lock = "job") {
    return ask<bool>([&](auto a) { session_->evict(lock_name(lock), entry, std::move(a)); });
  }
  AskedPtr<Done> close() {
    return ask<Done>([&](auto a) { session_->close(std::move(a)); });
  }
  // Lets time pass until it is answered.
  template <class T>
  AskedPtr<T> settled(AskedPtr<T> asked) {
    for (int n = 0; n < 20'000 && !asked->got; ++n) pass(std::chrono::milliseconds(1));
    EXPECT_TRUE(asked->got) << "never answered";
    return asked;
  }
  // Counts events.
  std::shared_ptr<int> watch(const Ticket& ticket, std::optional<Nonce> waiter = {},
                             const std::string& lock = "job", WatchId* id = nullptr) {
    auto events = std::make_shared<int>(0);
    loop().step([&] {
      const auto made = session_->watch(lock_name(lock), ticket, {waiter, false},
                                        [events, waiter, hints = hints_](const WatchEvent& event) {
                                          ++*events;
                                          if (waiter) (*hints)[*waiter] = event.hint;
                                        });
      if (id != nullptr) *id = made;
    });
    return events;
  }
  std::vector<std::string> keys(const std::string& lock = "job") {
    return etcd_.keys((setup_.root.empty() ? "" : setup_.root + "/") + lock + "/");
  }

  FakeEtcdWire wire;
  ClusterState cluster_state;
  std::vector<Result<Done>> opened;
  std::vector<std::pair<std::error_code, std::string>> ended;
  int resumed = 0;

 private:
  void session_ended(std::error_code reason, const std::string& detail) override {
    ended.emplace_back(reason, detail);
  }
  void session_resumed() override { ++resumed; }

  FakeEtcd& etcd_;
  const Setup setup_;
  // By waiter: the hint of the last event of its predecessor's watch.
  std::shared_ptr<std::map<Nonce, LookHint>> hints_ = std::make_shared<std::map<Nonce, LookHint>>();
  std::unique_ptr<Session> session_;
};

// How it stands: alone, or behind this many.
inline bool holder(const AskedPtr<Standing>& asked, std::uint64_t nonce) {
  if (!asked->ok()) return false;
  const auto& view = asked->value().view;
  return view.tickets.size() == 1 && view.omitted_ahead == 0 &&
         view.tickets[0].ours == Nonce{nonce};
}
inline bool gone(const AskedPtr<Standing>& asked) {
  return asked->ok() && asked->value().view.tickets.empty();
}

}  // namespace baton::etcd
