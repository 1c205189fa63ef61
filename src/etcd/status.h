// Classifies the result of a call to etcd by what baton must do next. Pure functions.
#pragma once

#include "etcd/namespace.h"

#include <baton/error.h>

#include <string>
#include <string_view>

namespace baton::etcd {

enum class Status {
  ok,
  lost,           // no usable response: the request may have taken effect or not
  not_sent,       // the request had no effect: no connection, no leader, or too busy
  lease_gone,     // the lease in the request does not exist
  bad_revision,   // a read at a revision that is compacted, or not reached yet
  token_expired,  // our token is not valid any more: authenticate again
  refused,        // permission denied
  unimplemented,  // the server is too old for this call
  failed,         // any other error; the request had no effect
};

// The status code and message of gRPC.
struct CallResult {
  int code = 0;
  std::string message;
};

Status status_of(const CallResult& verdict) noexcept;

// The condition is temporary: the caller can retry, perhaps on another endpoint.
inline bool is_transient(Status status) noexcept {
  return status == Status::lost || status == Status::not_sent;
}

// The error that the caller receives. what: the operation, as in "join /app/job".
Error call_error(Status status, const CallResult& verdict, std::string_view what);

}  // namespace baton::etcd
