// Searches what a test run has written for the passwords of the tests and for private keys. Prints
// where a secret is and which one, but not its text. The log of ctest has all output of the tests.
//   baton_secret_scan FILE_OR_DIRECTORY...
// Exit code 0: no secret; 1: a secret was found; 2: a file could not be read, or nothing was read.
#include "support/canaries.h"
#include "support/secret_search.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

namespace fs = std::filesystem;

struct Tally {
  std::size_t lines = 0;
  std::size_t found = 0;
  std::size_t unread = 0;
};

void scan(const fs::path& file, Tally& tally) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    ++tally.unread;
    std::printf("%s: cannot be read\n", file.c_str());
  }
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    ++tally.lines;
    for (std::size_t i = 0; i < baton::test::kCanaries.size(); ++i) {
      if (baton::test::trace_in(line, baton::test::kCanaries.at(i)).empty()) continue;
      ++tally.found;
      std::printf("%s:%zu: canary %zu of tests/support/canaries.h\n", file.c_str(), number, i + 1);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Tally tally;
  for (int i = 1; i < argc; ++i) {
    const fs::path given = argv[i];
    if (!fs::is_directory(given)) {
      scan(given, tally);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(given)) {
      if (entry.is_regular_file()) scan(entry.path(), tally);
    }
  }
  if (tally.lines == 0 || tally.unread != 0) {
    std::puts("secrets: not all of it was read");
    return 2;
  }
  std::printf("secrets: %zu lines, %zu with a secret in them\n", tally.lines, tally.found);
  return tally.found == 0 ? 0 : 1;
}
