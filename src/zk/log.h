// What the C client says in its log. Its callback knows no context, so this is one for the process.
#pragma once

#include "zk/namespace.h"

#include <string>

namespace baton::zk {

// The C client's log callback: remembers complaints.
void on_client_log(const char* line);

// What it complained of last, for messages; empty: nothing since it was forgotten.
std::string last_complaint();
void forget_complaint();

}  // namespace baton::zk
