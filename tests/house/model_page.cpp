// Checks that the functions which docs/model/README.md names exist. Its table names the functions
// that each step of the model stands for.
#include "rules.h"

#include <gtest/gtest.h>

#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace baton::house {
namespace {

struct Named {
  std::string file;
  std::string function;
};

// A row of the table has the form `src/a/b.cpp`: `X::f`, `X::g`; `src/c.cpp`: `h`.
std::vector<Named> functions_named_in(const std::string& row) {
  static const std::regex kQuoted("`([^`]+)`");
  std::vector<Named> found;
  std::string file;
  for (std::sregex_iterator it(row.begin(), row.end(), kQuoted), end; it != end; ++it) {
    const std::string word = (*it)[1];
    if (word.starts_with("src/")) {
      file = word;
    } else if (!file.empty()) {
      found.push_back({file, word});
    }
  }
  return found;
}

// Whether `text` has a line that begins with a type, then the name of the function and an opening
// parenthesis. A call after a dot, an arrow or a bracket does not count.
bool defines(const std::string& text, const std::string& function) {
  return std::regex_search(code_of(text),
                           std::regex("(^|\n)[A-Za-z][^\n;=.]*[ &*]" + function + "\\("));
}

TEST(House, TheModelsPageNamesFunctionsThatExist) {
  std::istringstream lines(text_of("docs/model/README.md"));
  std::size_t seen = 0;
  for (std::string line; std::getline(lines, line);) {
    for (const auto& [file, function] : functions_named_in(line)) {
      ++seen;
      EXPECT_TRUE(defines(text_of(file), function)) << file << " has no " << function;
    }
  }
  EXPECT_GT(seen, 40u) << "the table was not read";
}

TEST(House, TheCheckOfTheModelsPageBites) {
  const auto named =
      functions_named_in("| `grant` | `src/a.cpp`: `A::f`, `A::g`; `src/b.cpp`: `h` |");
  ASSERT_EQ(named.size(), 3u);
  EXPECT_EQ(named[1].file, "src/a.cpp");
  EXPECT_EQ(named[2].function, "h");
  EXPECT_TRUE(defines("x;\nvoid A::f(int n) {\n", "A::f"));
  EXPECT_FALSE(defines("void A::f2(int n) {}\n", "A::f"));
  EXPECT_FALSE(defines("// void A::f(int n) {\n", "A::f"));
  EXPECT_FALSE(defines("int B::g() {\n  a.A::f(1);\n}\n", "A::f"));
}

}  // namespace
}  // namespace baton::house
