// What a ZooKeeper server or its C client answered, as far as it makes a difference to us. Pure.
#pragma once

#include "zk/namespace.h"

#include <baton/error.h>

#include <string>
#include <string_view>

namespace baton::zk {

enum class Status {
  ok,
  no_node,
  node_exists,
  lost,              // no answer, or none that counts: it may have happened or not
  expired,           // the session is over
  no_auth,           // we may not
  auth_failed,       // our credentials were refused; the session is over
  unimplemented,     // the server is too old for it
  ephemeral_parent,  // the parent cannot have children
  failed,            // anything else; it has not happened
};

// From the C client's return codes.
Status status_of(int code) noexcept;

// For messages: "no node (-101)".
std::string text_of(int code);

// The error a caller gets. what: "create /app/job".
Error call_error(Status status, int code, std::string_view what);

}  // namespace baton::zk
