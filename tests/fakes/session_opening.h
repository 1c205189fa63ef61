// How the backends of the tests open a session: the last call of open() counts, and it gives up
// after four seconds.
#pragma once

#include "common/base/loop.h"
#include "common/seam/session.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace baton::internal {

class SessionOpening {
 public:
  using Opened = std::function<void(Result<Done>)>;
  using Make = std::function<std::unique_ptr<Session>(SessionListener&, Opened)>;
  // final_result: after a transient error the session goes on trying, so that is no result yet.
  enum class Accept { any_result, final_result };

  SessionOpening(Loop& loop, Accept accept, Make make)
      : loop_(loop), accept_(accept), make_(std::move(make)) {}

  void open(SessionListener& listener, Answer<std::unique_ptr<Session>> answer) {
    const auto number = ++opens_;
    answer_ = std::move(answer);
    session_ = make_(listener, [this, number](Result<Done> done) {
      loop_.defer([this, number, done = std::move(done)]() mutable {
        const bool final = accept_ == Accept::any_result || done || !transient(done.error());
        if (number == opens_ && final) finish(std::move(done));
      });
    });
    timer_ = loop_.at(loop_.now() + std::chrono::seconds(4), [this, number] {
      if (number == opens_) finish(Error(Errc::connection_failed, "no server"));
    });
  }
  void abandon() { session_.reset(); }

 private:
  void finish(Result<Done> done) {
    if (!answer_) return;
    loop_.cancel(timer_);
    auto session = std::move(session_);
    auto answer = std::exchange(answer_, nullptr);
    if (done) {
      answer(std::move(session));
    } else {
      ++opens_;
      answer(done.error());
    }
  }

  Loop& loop_;
  const Accept accept_;
  const Make make_;
  std::uint64_t opens_ = 0;
  TimerId timer_ = TimerId::none;
  Answer<std::unique_ptr<Session>> answer_;
  std::unique_ptr<Session> session_;
};

}  // namespace baton::internal
