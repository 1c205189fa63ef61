// Classifies the return codes of ZooKeeper's C client by what baton must do next. Pure functions.
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
  lost,              // no usable answer: the request may have taken effect or not
  expired,           // the session has ended
  no_auth,           // permission denied
  auth_failed,       // the credentials were refused; the session has ended
  unimplemented,     // the server is too old for this request
  ephemeral_parent,  // the parent is an ephemeral node, which cannot have children
  failed,            // any other error; the request had no effect
};

// Maps a return code of the C client.
Status status_of(int code) noexcept;

// For messages: "no node (-101)".
std::string text_of(int code);

// The error that the caller receives. what: the operation, as in "create /app/job".
Error call_error(Status status, int code, std::string_view what);

}  // namespace baton::zk
