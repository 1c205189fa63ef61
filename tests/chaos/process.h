// Processes of our own program, and what they leave in a store.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace baton::chaos {

// Starts this program again with these arguments and, as the last one, our process id: fork and
// exec, never a fork that goes on. Throws.
pid_t start_self(const std::vector<std::string>& arguments);

// For the child, first of all: it ends with its parent. parent: its last argument.
void end_with_parent(const std::string& parent);

// How it ended: its exit code, or 128 + n for signal n. nullopt: it still runs.
std::optional<int> wait_for_end(pid_t pid, std::chrono::milliseconds limit);

// SIGKILL, and returns when the process is gone. How it ended, as above: anything but 137 was not
// our doing.
int kill_and_reap(pid_t pid);

// Everything below the directory of a file store that must not outlive its clients: all but the
// token counters and empty directories.
std::vector<std::string> leftovers(const std::string& directory);

}  // namespace baton::chaos
