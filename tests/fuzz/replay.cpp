// Replays the corpus of one target without libFuzzer, for builds without clang.
// Usage: baton_fuzz_replay NAME DIRECTORY_OR_FILE
#include "fuzz.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

namespace {

std::vector<std::filesystem::path> inputs_in(const std::filesystem::path& where) {
  if (!std::filesystem::is_directory(where)) return {where};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(where)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  const auto& all = baton::fuzz::targets();
  const auto target = std::find_if(all.begin(), all.end(), [&](const auto& t) {
    return argc == 3 && std::string_view(t.name) == argv[1];
  });
  if (target == all.end()) {
    std::cerr << "usage: baton_fuzz_replay NAME DIRECTORY_OR_FILE; names:";
    for (const auto& t : all) std::cerr << " " << t.name;
    std::cerr << "\n";
    return 64;
  }
  const auto files = inputs_in(argv[2]);
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
    if (!stream && !stream.eof()) {
      std::cerr << "cannot read " << file << "\n";
      return 1;
    }
    // Printed before the run. If the process ends now, this input is the cause.
    std::cout << file.string() << " (" << bytes.size() << " bytes)" << std::endl;
    target->body(bytes);
  }
  std::cout << files.size() << " inputs\n";
  return files.empty() ? 1 : 0;
}
