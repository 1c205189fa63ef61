// Runs a program to its end.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace baton::test {

struct Finished {
  int code = -1;  // 128 + n for signal n; -1: it took too long and was killed
  std::string out;
  std::string err;
};

// The program is searched in PATH and has no input. `variables` ("NAME=value") are added to the
// environment of this process. Throws if the program cannot be started.
Finished run(std::vector<std::string> words, std::vector<std::string> variables = {},
             std::chrono::milliseconds limit = std::chrono::seconds(30));

// Whether PATH has this program.
bool in_path(const std::string& program);

}  // namespace baton::test
