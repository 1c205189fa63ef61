// Opens a session for the backends of the tests, within four seconds. The backends of the clusters
// do the same.
#pragma once

#include "common/base/loop.h"
#include "common/seam/session.h"
#include "common/seam/session_opener.h"

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

namespace baton::internal {

class SessionOpening {
 public:
  using Make = std::function<std::unique_ptr<Session>(SessionListener&, Answer<Done> opened)>;
  // final_result: a transient error does not end the opening, because the session keeps retrying.
  enum class Accept { any_result, final_result };

  SessionOpening(Loop& loop, Accept accept, Make make)
      : make_(std::move(make)), opener_(loop, options(), rules(accept)) {}

  void open(SessionListener& listener, Answer<std::unique_ptr<Session>> answer) {
    opener_.open(
        [this, &listener](Answer<Done> opened) { return make_(listener, std::move(opened)); },
        std::move(answer));
  }
  void abandon() { opener_.destroy_session(); }

 private:
  static BackendOptions options() {
    BackendOptions options;
    options.session_timeout = options.connect_timeout = std::chrono::seconds(5);
    options.log = [](LogLevel, std::string_view) {};
    return options;
  }
  static SessionOpener::Rules rules(Accept accept) {
    return {
        [] { return "the test's store"; },
        [] { return Error(Errc::connection_failed, "no server"); },
        [accept](const Error& error) { return accept == Accept::final_result && transient(error); },
        [] {}};
  }

  const Make make_;
  SessionOpener opener_;
};

}  // namespace baton::internal
