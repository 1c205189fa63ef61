#include "support/secret_search.h"

#include "support/base64.h"

#include <stdexcept>

namespace baton::test {

namespace {
constexpr std::size_t kEnough = 8;

std::string hex(std::string_view bytes, const char* digits, const char* before = "") {
  std::string text;
  for (const unsigned char c : bytes) {
    text += before;
    text += digits[c >> 4U];
    text += digits[c & 15U];
  }
  return text;
}
}  // namespace

std::vector<std::string> traces_of(std::string_view secret) {
  if (secret.size() < kEnough) throw std::invalid_argument("too short to be looked for");
  constexpr const char* kLower = "0123456789abcdef";
  constexpr const char* kUpper = "0123456789ABCDEF";
  const auto start = secret.substr(0, kEnough);
  std::vector<std::string> traces{std::string(start), hex(start, kLower), hex(start, kUpper),
                                  hex(start, kLower, "%"), hex(start, kUpper, "%")};
  // Most percent-encoders encode only bytes that are not letters or digits.
  std::string mixed;
  for (const char c : start) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    mixed += plain ? std::string(1, c) : hex({&c, 1}, kUpper, "%");
  }
  traces.push_back(mixed);
  // Base64 turns three bytes into four characters, so a secret may begin at the first, second or
  // third byte of such a group. The characters that depend on neighbouring bytes are left out.
  for (const std::size_t shift : {0U, 1U, 2U}) {
    const auto coded = to_base64(std::string(shift, '\0') + std::string(start));
    const std::size_t from = (shift * 8 + 5) / 6;
    const std::size_t to = (shift + kEnough) * 8 / 6;
    traces.push_back(coded.substr(from, to - from));
  }
  return traces;
}

std::string trace_in(std::string_view text, std::string_view secret) {
  for (auto& trace : traces_of(secret)) {
    if (text.find(trace) != text.npos) return trace;
  }
  return {};
}

}  // namespace baton::test
