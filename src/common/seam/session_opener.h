// SessionOpener: what the backends of the clusters do alike when they open a session: one session
// at a time, within the connect timeout, answered once.
#pragma once

#include "common/seam/session.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace baton::internal {

class SessionOpener {
 public:
  // Creates a session, which reports its first success and its failures until then. May throw.
  using Make = UniqueFunction<std::unique_ptr<Session>(Answer<Done> opened)>;

  // What differs between the clusters. All are called on the strand.
  struct Rules {
    std::function<std::string()> where;  // for log messages
    std::function<Error()> silence;      // the error if no server has answered in time
    // Whether the session, which has just reported this error, may still open by itself.
    std::function<bool(const Error&)> keeps_trying;
    std::function<void()> finished;  // an answer is about to be given
  };

  SessionOpener(Loop& loop, const BackendOptions& options, Rules rules);

  // Opens a session. An earlier open() that was not answered is abandoned.
  void open(Make make, Answer<std::unique_ptr<Session>> answer);
  // Replaces the session that is being opened.
  void replace(Make make);
  // Ends this open() with an error.
  void fail(const Error& error) { finish(error); }
  // Destroys the session that is being opened, if there is one. Not on the strand: the loop has
  // stopped.
  void destroy_session() noexcept { session_.reset(); }

  // How long an open() may take. The caller waits a little longer, so it gets the reason from us.
  std::chrono::milliseconds patience() const noexcept { return patience_; }
  // The number of this open(), for callbacks that must not act on a later one.
  std::uint64_t number() const noexcept { return number_; }
  bool waits(std::uint64_t number) const noexcept { return number == number_ && answer_; }
  const Session& session() const noexcept { return *session_; }

 private:
  void start(Make& make);
  void opened(Result<Done> result);
  void finish(const Result<Done>& result);
  void report_timeout(std::chrono::milliseconds granted);

  Loop& loop_;
  const std::chrono::milliseconds session_timeout_;
  const std::chrono::milliseconds patience_;
  const std::function<void(LogLevel, std::string_view)> log_;
  const Rules rules_;
  std::uint64_t number_ = 0;
  std::uint64_t session_number_ = 0;
  TimerId timer_ = TimerId::none;
  bool timeout_reported_ = false;
  Answer<std::unique_ptr<Session>> answer_;  // null: nothing is being opened
  std::unique_ptr<Session> session_;
};

}  // namespace baton::internal
