// Session::respond(): runs the work of a call and answers it. Only for session.cpp and
// session_admin.cpp.
#pragma once

#include "file/session.h"

#include <exception>
#include <type_traits>
#include <utility>

namespace baton::file {

// Does the work now and answers after the current step, unless the session is destroyed by then.
template <class T, class F>
void Session::respond(Answer<T> answer, F&& work) {
  Result<T> result = [&]() -> Result<T> {
    try {
      return work();
    } catch (const Error& e) {
      return e;
    } catch (const std::exception& e) {
      return Error(Errc::store_error, e.what());
    }
  }();
  loop_.defer(lifetime_.guard([answer = std::move(answer), result = std::move(result)]() mutable {
    answer(std::move(result));
  }));
}

}  // namespace baton::file
