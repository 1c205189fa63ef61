// Runs the commands: one function for each command word. Each returns the exit code, or throws
// Failure or Error.
#pragma once

#include <baton/client.h>

#include <chrono>
#include <string>

#include "args.h"

namespace baton::cli {

int run_command(const Args& args);
int ls_command(const Args& args);
int show_command(const Args& args);
int watch_command(const Args& args);
int evict_command(const Args& args);
int doctor_command(const Args& args);

// The table that show and watch print without --json.
std::string describe(const LockSnapshot& snapshot, std::chrono::system_clock::time_point now);

// Writes to stdout and flushes. Throws Failure when that fails (a full disk).
void print(const std::string& text);

}  // namespace baton::cli
