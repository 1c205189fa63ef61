// Starts and ends processes of this program, and finds what they leave in a store.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace baton::chaos {

// Starts this program again with posix_spawn, with these arguments and this process id as the last
// one. Throws std::system_error.
pid_t start_self(const std::vector<std::string>& arguments);

// The child calls this first, so that it ends with its parent. parent: its last argument.
void end_with_parent(const std::string& parent);

// Returns the exit code, or 128 + n if signal n ended the process. nullopt: it still runs.
std::optional<int> wait_for_end(pid_t pid, std::chrono::milliseconds limit);

// Sends SIGKILL and returns when the process is gone. Returns its end as above; any value except
// 137 means that the process ended before the kill.
int kill_and_reap(pid_t pid);

// All files below the directory of a file store that must not outlive its clients: all except token
// counters.
std::vector<std::string> leftovers(const std::string& directory);

}  // namespace baton::chaos
