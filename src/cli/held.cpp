#include "held.h"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

namespace baton::cli {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    out += low >= 0 ? static_cast<char>(high * 16 + low) : text[i];
    if (low >= 0) i += 2;
  }
  return out;
}

}  // namespace

std::string store_identity(std::string_view url) {
  url = url.substr(0, url.find('?'));  // with another token base it is still the same store
  std::string out(url);
  constexpr std::string_view kFile = "file://";
  if (url.starts_with(kFile)) {
    std::error_code ignored;
    const std::filesystem::path path(percent_decode(url.substr(kFile.size())) + "/.");
    const auto resolved = std::filesystem::weakly_canonical(path, ignored);
    out = std::string(kFile) + (ignored ? path : resolved).string();
  }
  while (out.size() > 1 && (out.back() == '/' || out.back() == '.')) out.pop_back();
  std::string line;
  for (const char c : out) line += c == '\n' ? std::string("%0A") : std::string(1, c);
  return line;
}

std::vector<std::uint64_t> held_tokens(std::string_view name, std::string_view store) {
  std::vector<std::uint64_t> tokens;
  const char* held = std::getenv("BATON_HELD");
  std::istringstream lines(held == nullptr ? "" : held);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(' ');
    const std::size_t second = first == std::string::npos ? first : line.find(' ', first + 1);
    if (second == std::string::npos) continue;
    std::uint64_t token = 0;
    std::from_chars(line.data() + first + 1, line.data() + second, token);
    const std::string_view view(line);
    if (view.substr(0, first) == name && view.substr(second + 1) == store) tokens.push_back(token);
  }
  return tokens;
}

void add_held(const HeldLock& lock) {
  const char* before = std::getenv("BATON_HELD");
  std::string held = before == nullptr ? "" : std::string(before) + "\n";
  held += lock.name + " " + std::to_string(lock.token) + " " + lock.store;
  setenv("BATON_HELD", held.c_str(), 1);
}

}  // namespace baton::cli
