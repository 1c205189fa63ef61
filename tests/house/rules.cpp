#include "rules.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

namespace baton::house {

namespace fs = std::filesystem;

fs::path top() { return BATON_SOURCE_DIR; }

std::vector<fs::path> files_under(const std::string& folder,
                                  const std::vector<std::string>& endings) {
  std::vector<fs::path> found;
  if (!fs::exists(top() / folder)) return found;
  for (const auto& entry : fs::recursive_directory_iterator(top() / folder)) {
    if (!entry.is_regular_file()) continue;
    const auto name = entry.path().filename().string();
    const bool wanted = std::any_of(endings.begin(), endings.end(),
                                    [&](const std::string& e) { return name.ends_with(e); });
    if (wanted) found.push_back(fs::relative(entry.path(), top()));
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string text_of(const fs::path& file) {
  std::ifstream in(top() / file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<Include> includes_of(const fs::path& file) {
  static const std::regex kInclude(R"re(^\s*#\s*include\s*[<"]([^>"]+)[>"])re");
  std::vector<Include> found;
  std::istringstream lines(text_of(file));
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::smatch match;
    if (std::regex_search(line, match, kInclude)) found.push_back({file, number, match[1]});
  }
  return found;
}

std::string code_of(std::string_view text) {
  std::string code;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (text.substr(i, 2) == "/*") {
      i = std::min(text.find("*/", i + 2), text.size() - 2) + 1;
    } else if (text[i] == '"') {
      while (++i < text.size() && text[i] != '"' && text[i] != '\n') i += text[i] == '\\';
      code += "\"\"";
    } else {
      code += text[i];
    }
  }
  return code;
}

std::string room_of(const fs::path& file) {
  auto part = file.begin();
  const std::string first = part->string();
  if (first != "src" || std::next(part, 2) == file.end()) return first;
  const std::string second = (++part)->string();
  if (second != "common" || std::next(part, 2) == file.end()) return "src/" + second;
  return "src/common/" + (++part)->string();
}

std::set<std::string> tests_in_sources() {
  static const std::regex kTest(R"(\bTEST(?:_P|_F)?\s*\(\s*(\w+)\s*,\s*(\w+)\s*\))");
  std::set<std::string> found;
  for (const auto& file : files_under("tests", {".cpp"})) {
    const auto text = text_of(file);
    for (std::sregex_iterator it(text.begin(), text.end(), kTest), end; it != end; ++it) {
      found.insert((*it)[1].str() + "." + (*it)[2].str());
    }
  }
  return found;
}

std::vector<std::string> tests_named_in(std::string_view line) {
  static const std::regex kName(R"(`([A-Z]\w+\.[A-Z]\w+)`)");
  std::vector<std::string> found;
  const std::string text(line);
  for (std::sregex_iterator it(text.begin(), text.end(), kName), end; it != end; ++it) {
    found.push_back((*it)[1]);
  }
  return found;
}

}  // namespace baton::house
