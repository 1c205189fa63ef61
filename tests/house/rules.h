// Functions that read the source tree for the checks in this folder.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace baton::house {

struct Include {
  std::filesystem::path file;  // relative to the top of the source tree
  int line = 0;
  std::string target;  // the text between <> or ""
};

// Top of the source tree.
std::filesystem::path top();
// The files below a folder whose names have one of these endings, sorted. Empty if there is no such
// folder. Paths are relative to top().
std::vector<std::filesystem::path> files_under(const std::string& folder,
                                               const std::vector<std::string>& endings);
std::string text_of(const std::filesystem::path& file);
std::vector<Include> includes_of(const std::filesystem::path& file);
// The text without comments and string literals.
std::string code_of(std::string_view text);
// The room of a file: the folder that decides what it may include, such as "include",
// "src/common/base" or "src/file".
std::string room_of(const std::filesystem::path& file);
// The names of all tests, as "Suite.Case", read from the sources under tests/.
std::set<std::string> tests_in_sources();
// The test names in a line that stand in backticks, as "Suite.Case".
std::vector<std::string> tests_named_in(std::string_view line);

}  // namespace baton::house
