// What an etcd server or gRPC answered, as far as it makes a difference to us. Pure.
#pragma once

#include "etcd/namespace.h"

#include <baton/error.h>

#include <string>
#include <string_view>

namespace baton::etcd {

enum class Status {
  ok,
  lost,           // no answer, or none that counts: it may have happened or not
  not_sent,       // not now, and it has not happened: no connection, no leader, too busy, no room
  lease_gone,     // the lease that was named does not exist
  bad_revision,   // a read at a revision that is compacted away, or not there yet
  token_expired,  // our token is no longer good: authenticate again
  refused,        // we may not
  unimplemented,  // the server is too old for it
  failed,         // anything else; it has not happened
};

// gRPC's code and message.
struct CallResult {
  int code = 0;
  std::string message;
};

Status status_of(const CallResult& verdict) noexcept;

// It passes by itself: worth another try, perhaps elsewhere.
inline bool is_transient(Status status) noexcept {
  return status == Status::lost || status == Status::not_sent;
}

// The error a caller gets. what: "join /app/job".
Error call_error(Status status, const CallResult& verdict, std::string_view what);

}  // namespace baton::etcd
