#include "etcd/path.h"

#include "common/seam/lock_name.h"
#include "common/seam/token_base.h"

#include <array>
#include <charconv>

namespace baton::etcd {

namespace {

constexpr std::string_view kVersion = "baton/1 ";
constexpr std::size_t kLongestLabel = 256;

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

}  // namespace

std::string lock_prefix(std::string_view root, std::string_view lock) {
  std::string prefix(root);
  if (!root.empty()) prefix += '/';
  prefix += lock;
  prefix += '/';
  return prefix;
}

std::string token_base_key(std::string_view root) {
  return (root.empty() ? std::string() : std::string(root) + "/") + std::string(kTokenBaseName);
}

std::string range_end_of(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty()) {
    if (static_cast<unsigned char>(end.back()) < 0xff) {
      end.back() = static_cast<char>(end.back() + 1);
      return end;
    }
    end.pop_back();
  }
  return std::string(1, '\0');  // to the end of the key space; braces would make two bytes
}

std::string entry_key(std::string_view prefix, std::int64_t lease, KeySlot slot) {
  std::array<char, 17> hex{};
  const auto end =
      std::to_chars(hex.data(), hex.data() + hex.size(), static_cast<std::uint64_t>(lease), 16).ptr;
  std::string key(prefix);
  key.append(hex.data(), end);
  key += '-';
  key += std::to_string(static_cast<std::uint64_t>(slot));
  return key;
}

bool is_direct_entry(std::string_view prefix, std::string_view key) noexcept {
  return key.size() > prefix.size() && key.starts_with(prefix) &&
         key.find('/', prefix.size()) == std::string_view::npos &&
         key.substr(prefix.size()) != kTokenBaseName;
}

std::string format_entry_id(std::string_view prefix, std::string_view key, std::int64_t revision) {
  return std::string(key.substr(prefix.size())) + "@" + std::to_string(revision);
}

std::optional<EntryId> parse_entry_id(std::string_view id) {
  if (id.empty() || id.find('/') != std::string_view::npos) return std::nullopt;
  const auto at = id.rfind('@');
  if (at != std::string_view::npos && at != 0) {
    if (const auto revision = number<std::int64_t>(id.substr(at + 1)); revision && *revision > 0) {
      return EntryId{std::string(id.substr(0, at)), *revision};
    }
  }
  return EntryId{std::string(id), 0};
}

std::optional<std::string> lock_of_key(std::string_view root, std::string_view key) {
  if (!root.empty()) {
    if (!key.starts_with(root) || key.size() <= root.size() || key[root.size()] != '/') {
      return std::nullopt;
    }
    key.remove_prefix(root.size() + 1);
  }
  const auto slash = key.rfind('/');
  if (slash == std::string_view::npos || slash + 1 == key.size()) return std::nullopt;
  if (key.substr(slash + 1) == kTokenBaseName) return std::nullopt;  // of a root below ours
  const std::string_view name = key.substr(0, slash);
  if (!parse_lock_name(name).has_value()) return std::nullopt;
  return std::string(name);
}

std::string encode_value(std::string_view label, std::chrono::system_clock::time_point since) {
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(since.time_since_epoch()).count();
  return std::string(kVersion) + std::to_string(ms) + " " + std::string(label);
}

std::optional<EntryValue> decode_value(std::string_view value) {
  if (!value.starts_with(kVersion)) return std::nullopt;
  value.remove_prefix(kVersion.size());
  const auto space = value.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto ms = number<std::int64_t>(value.substr(0, space));
  if (!ms || *ms < 0) return std::nullopt;
  // Any program can write this value: limit it to the range of system_clock.
  constexpr std::int64_t kLast = 9'000'000'000'000;
  EntryValue result;
  result.since =
      std::chrono::system_clock::time_point(std::chrono::milliseconds(*ms > kLast ? kLast : *ms));
  result.label = std::string(value.substr(space + 1, kLongestLabel));
  return result;
}

}  // namespace baton::etcd
