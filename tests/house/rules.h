// Reading the source tree for the rules of the house.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace baton::house {

struct Include {
  std::filesystem::path file;  // relative to the top
  int line = 0;
  std::string target;  // what stands between <> or ""
};

// Top of the source tree.
std::filesystem::path top();
// Files under a folder whose names end so, sorted; empty if there is no such folder.
std::vector<std::filesystem::path> files_under(const std::string& folder,
                                               const std::vector<std::string>& endings);
std::string text_of(const std::filesystem::path& file);
std::vector<Include> includes_of(const std::filesystem::path& file);
// The text without comments and string literals.
std::string code_of(std::string_view text);
// The room of a file: "include", "src/common/base", "src/file", ...
std::string room_of(const std::filesystem::path& file);
// All tests, as "Suite.Case", read from the sources under tests/.
std::set<std::string> tests_in_sources();
// All Suite.Case in backticks of a line.
std::vector<std::string> tests_named_in(std::string_view line);

}  // namespace baton::house
