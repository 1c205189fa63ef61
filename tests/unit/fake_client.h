// The common part of the clients of the fake stores: a Session that is called as the engine calls
// it.
#pragma once

#include "common/seam/lock_name.h"
#include "common/seam/session.h"
#include "manual_loop.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::internal {

inline LockName lock_name(const std::string& text) { return parse_lock_name(text).value(); }

// The result of a request.
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

// The view contains only this ticket, so it holds the lock.
inline bool holder(const AskedPtr<Standing>& asked, std::uint64_t nonce) {
  if (!asked->ok()) return false;
  const auto& view = asked->value().view;
  return view.tickets.size() == 1 && view.omitted_ahead == 0 &&
         view.tickets[0].ours == Nonce{nonce};
}
inline bool gone(const AskedPtr<Standing>& asked) {
  return asked->ok() && asked->value().view.tickets.empty();
}

// S: the class of the session.
template <class S>
class FakeClient : protected SessionListener {
 public:
  explicit FakeClient(ManualLoop& loop) : loop_(loop) {}

  S& session() { return *session_; }
  void destroy() {
    loop_.step([&] { session_.reset(); });
  }
  ManualLoop& loop() { return loop_; }

  // ---- requests; an answer inside the call, or a second answer, fails the test

  template <class T, class F>
  AskedPtr<T> ask(F question) {
    auto asked = std::make_shared<Asked<T>>();
    auto inside = std::make_shared<bool>(true);
    loop_.step([&] {
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
  // Sets how long the caller of the next request waits.
  void wanted_for(Nanos time) { session_->wanted_until(loop_.now() + time); }
  AskedPtr<bool> evict(const std::string& entry, const std::string& lock = "job") {
    return ask<bool>([&](auto a) { session_->evict(lock_name(lock), entry, std::move(a)); });
  }
  AskedPtr<Done> close() {
    return ask<Done>([&](auto a) { session_->close(std::move(a)); });
  }
  // Returns a counter of the events.
  std::shared_ptr<int> watch(const Ticket& ticket, std::optional<Nonce> waiter = {},
                             const std::string& lock = "job", WatchId* id = nullptr) {
    auto events = std::make_shared<int>(0);
    loop_.step([&] {
      const auto made = session_->watch(lock_name(lock), ticket, {waiter, false},
                                        [events, waiter, hints = hints_](const WatchEvent& event) {
                                          ++*events;
                                          if (waiter) (*hints)[*waiter] = event.hint;
                                        });
      if (id != nullptr) *id = made;
    });
    return events;
  }

  std::vector<std::pair<std::error_code, std::string>> ended;
  int resumed = 0;

 protected:
  std::unique_ptr<S> session_;

 private:
  void session_ended(std::error_code reason, const std::string& detail) override {
    ended.emplace_back(reason, detail);
  }
  void session_resumed() override { ++resumed; }

  ManualLoop& loop_;
  // For each waiter: the hint of the last event from the watch on its predecessor.
  std::shared_ptr<std::map<Nonce, LookHint>> hints_ = std::make_shared<std::map<Nonce, LookHint>>();
};

}  // namespace baton::internal
