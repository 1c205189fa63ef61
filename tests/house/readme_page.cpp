// Checks that the example in README.md is code that compiles: examples/first.cpp must contain its
// lines in the same order.
#include "rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace baton::house {
namespace {

// The lines without indentation and without empty lines. Leaves out the lines that differ on
// purpose: includes, main() and Client::connect(), because first.cpp takes any URL.
std::vector<std::string> lines_of(const std::string& code) {
  std::istringstream in(code);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
    if (line.empty() || line.starts_with("#include") || line == "int main() {") continue;
    if (line.find("Client::connect(") != line.npos) continue;
    lines.push_back(line);
  }
  return lines;
}

// The first line of the page's first C++ block that the program does not have, in the same order.
// Empty: the program has every line. "no example": the page has no C++ block.
std::string first_missing(const std::string& page, const std::string& program) {
  const std::string opening = "```cpp\n";
  const auto begin = page.find(opening);
  if (begin == page.npos) return "no example";
  const auto code = page.substr(begin + opening.size());
  const auto built = lines_of(program);
  auto at = built.begin();
  for (const auto& line : lines_of(code.substr(0, code.find("```")))) {
    at = std::find(at, built.end(), line);
    if (at == built.end()) return line;
    ++at;
  }
  return "";
}

TEST(House, TheExampleOfTheReadmeIsBuilt) {
  EXPECT_EQ(first_missing(text_of("README.md"), text_of("examples/first.cpp")), "");
}

TEST(House, TheCheckOfTheReadmeBites) {
  const std::string page = "x\n```cpp\n#include <a>\nint main() {\n  b;\n  c;\n}\n```\nd\n";
  EXPECT_EQ(first_missing(page, "int f() {\n  b;\n  e;\n  c;\n}\n"), "");
  EXPECT_EQ(first_missing(page, "int f() {\n  c;\n  b;\n}\n"), "c;");
  EXPECT_EQ(first_missing(page, "int f() {\n  b;\n}\n"), "c;");
  EXPECT_EQ(first_missing("d\n", "d\n"), "no example");
}

}  // namespace
}  // namespace baton::house
