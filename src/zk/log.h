// What the C client says in its log. Its callback knows no context, so this is one for the process.
#pragma once

#include <string>

namespace baton::internal {

// The C client's log callback: remembers complaints.
void zk_on_log(const char* line);

// What it complained of last, for messages; empty: nothing since it was forgotten.
std::string zk_last_complaint();
void zk_forget_complaint();

}  // namespace baton::internal
