#include "common/seam/lock_name.h"

#include <baton/name.h>

#include "common/base/sha256.h"

#include <algorithm>
#include <cstddef>

namespace baton::internal {

class LockNameMaker {
 public:
  static LockName make(std::string_view text) { return LockName(std::string(text)); }
};

namespace {

constexpr std::size_t kMaxName = 400;
constexpr std::size_t kMaxSegment = 100;
constexpr std::size_t kMaxSegments = 8;

bool legal_byte(char c) noexcept {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("._:@=+-").find(c) != std::string_view::npos;
}

// True for "...-lock-000123" and "...__lock__000123": ZooKeeper clients take these names for queue
// entries. A counter that has overflowed gives numbers with a minus sign, of ten characters or
// more: "...-lock--000000005".
bool looks_like_entry(std::string_view segment) noexcept {
  const auto last = segment.find_last_not_of("0123456789");
  if (last == std::string_view::npos || last + 1 == segment.size()) return false;
  auto head = segment.substr(0, last + 1);
  const auto digits = segment.size() - head.size();
  const bool wrapped = head.ends_with("-lock--") || head.ends_with("__lock__-");
  if (wrapped && (digits == 9 || digits == 10)) head.remove_suffix(1);
  return head.ends_with("-lock-") || head.ends_with("__lock__");
}

// Null if the segment is fine, else what is wrong with it.
const char* segment_fault(std::string_view segment) noexcept {
  if (segment.empty()) return "has an empty segment";
  if (segment.size() > kMaxSegment) return "has a segment of more than 100 bytes";
  if (segment == "." || segment == "..") return "has a segment '.' or '..'";
  if (!std::all_of(segment.begin(), segment.end(), legal_byte)) {
    return "has a byte other than A-Z a-z 0-9 . _ : @ = + - /";
  }
  if (looks_like_entry(segment)) {
    return "has a segment that looks like a queue entry (-lock-N, __lock__N)";
  }
  return nullptr;
}

const char* name_fault(std::string_view name) noexcept {
  if (name.empty()) return "is empty";
  if (name.size() > kMaxName) return "is longer than 400 bytes";
  std::size_t segments = 0;
  for (;;) {
    const auto slash = name.find('/');
    if (const char* fault = segment_fault(name.substr(0, slash))) return fault;
    if (++segments > kMaxSegments) return "has more than 8 segments";
    if (slash == std::string_view::npos) return nullptr;
    name.remove_prefix(slash + 1);
  }
}

Error invalid_name(std::string_view text, const std::string& fault) {
  return {Errc::invalid_name, "lock name \"" + escape_for_message(text) + "\" " + fault +
                                  "; encode_name() makes a legal name of any text"};
}

}  // namespace

std::string escape_for_message(std::string_view text, std::size_t limit) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\';
    if (out.size() + (plain ? 1 : 4) > limit) return out + "...";
    if (plain) {
      out.push_back(c);
    } else {
      out.append("\\x").append(1, kHex[byte >> 4]).append(1, kHex[byte & 0xf]);
    }
  }
  return out;
}

Result<LockName> parse_lock_name(std::string_view text) {
  if (const char* fault = name_fault(text)) return invalid_name(text, fault);
  return LockNameMaker::make(text);
}

Result<std::string> parse_name_prefix(std::string_view text) {
  if (text.empty()) return std::string();
  if (text.size() > kMaxName) return invalid_name(text, "is longer than 400 bytes");
  // Complete segments must be legal. The last segment may be the beginning of a legal segment.
  const auto slash = text.rfind('/');
  const auto last = slash == std::string_view::npos ? text : text.substr(slash + 1);
  if (slash != std::string_view::npos) {
    if (const char* fault = name_fault(text.substr(0, slash))) return invalid_name(text, fault);
    const auto segments = std::count(text.begin(), text.end(), '/') + 1;
    if (segments > static_cast<std::ptrdiff_t>(kMaxSegments)) {
      return invalid_name(text, "has more than 8 segments");
    }
  }
  if (last.size() > kMaxSegment) return invalid_name(text, "has a segment of more than 100 bytes");
  if (!std::all_of(last.begin(), last.end(), legal_byte)) {
    return invalid_name(text, "has a byte that no lock name has");
  }
  return std::string(text);
}

}  // namespace baton::internal

namespace baton {

bool is_valid_name(std::string_view name) noexcept { return internal::name_fault(name) == nullptr; }

std::string encode_name(std::string_view text) {
  using internal::kMaxSegment;
  // "=" alone encodes the empty text, and "==" starts a hash. An escape ("=XX") is neither of them.
  if (text.empty()) return "=";
  static constexpr char kHex[] = "0123456789ABCDEF";
  constexpr std::size_t kPlainLimit = 397;  // four segments of at most 100 bytes and three slashes
  constexpr std::size_t kKeptOfLong = 200;
  std::string flat;
  for (std::size_t i = 0; i < text.size() && flat.size() <= kPlainLimit; ++i) {
    const char c = text[i];
    // Escape a dot at the start of a segment ("." and ".." are illegal), and the k of "lock-" and
    // "lock_", so that no segment looks like a queue entry.
    const bool dot = c == '.' && flat.size() % kMaxSegment == 0;
    const bool lock = c == 'k' && i >= 3 && text.substr(i - 3, 4) == "lock" &&
                      i + 1 < text.size() && (text[i + 1] == '-' || text[i + 1] == '_');
    if (internal::legal_byte(c) && c != '=' && !dot && !lock) {
      flat.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      flat.append("=").append(1, kHex[byte >> 4]).append(1, kHex[byte & 0xf]);
    }
  }
  const bool too_long = flat.size() > kPlainLimit;
  if (too_long) flat.resize(kKeptOfLong);
  std::string name;
  for (std::size_t at = 0; at < flat.size(); at += kMaxSegment) {
    if (at > 0) name.push_back('/');
    name.append(flat, at, kMaxSegment);
  }
  if (too_long) name.append("/==").append(internal::sha256_hex(text));
  return name;
}

}  // namespace baton
