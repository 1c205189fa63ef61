// Keeps the last warning or error of the C client's log. The log callback has no context argument,
// so there is one record for the process.
#pragma once

#include "zk/namespace.h"

#include <string>

namespace baton::zk {

// The C client's log callback: records warnings and errors.
void on_client_log(const char* line);

// The last warning or error, for messages; empty: none since forget_complaint().
std::string last_complaint();
void forget_complaint();

}  // namespace baton::zk
