// Fuzzes lock names. is_valid_name() must agree with a second implementation of the rule in this
// file, and every store must accept every legal name.
#include <baton/error.h>
#include <baton/name.h>

#include "common/seam/lock_name.h"
#include "etcd/path.h"
#include "file/names.h"
#include "fuzz.h"
#include "zk/path.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::internal {
namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == '/') {
      parts.emplace_back();
    } else {
      parts.back().push_back(c);
    }
  }
  return parts;
}

bool legal_segment(const std::string& segment) {
  static const std::string kBytes =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@=+-";
  if (segment.empty() || segment.size() > 100 || segment == "." || segment == "..") return false;
  if (segment.find_first_not_of(kBytes) != segment.npos) return false;
  std::string head = segment;
  while (!head.empty() && head.back() >= '0' && head.back() <= '9') head.pop_back();
  if (head.size() == segment.size()) return true;
  const auto ends = [&](std::string_view mark) { return std::string_view(head).ends_with(mark); };
  const auto digits = segment.size() - head.size();
  const bool wrapped = digits == 9 || digits == 10;
  return !ends("-lock-") && !ends("__lock__") &&
         !(wrapped && (ends("-lock--") || ends("__lock__-")));
}

bool legal(std::string_view text) {
  if (text.empty() || text.size() > 400) return false;
  const auto segments = split(text);
  return segments.size() <= 8 && std::all_of(segments.begin(), segments.end(), legal_segment);
}

// Reverses encode_name(). Works only for a text that encode_name() did not cut off.
std::string decode(std::string_view name) {
  std::string flat;
  for (const char c : name) {
    if (c != '/') flat.push_back(c);
  }
  if (flat == "=") return {};
  std::string text;
  for (std::size_t i = 0; i < flat.size(); ++i) {
    if (flat[i] != '=') {
      text.push_back(flat[i]);
      continue;
    }
    FUZZ_REQUIRE(i + 2 < flat.size());
    text.push_back(static_cast<char>(std::stoi(flat.substr(i + 1, 2), nullptr, 16)));
    i += 2;
  }
  return text;
}

bool shown_safely(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

// Each store maps a legal name to a path or key from which it can find the lock again.
void check_stores(const LockName& name) {
  const auto segments = split(name.text());
  const auto directories = file::lock_directories(name);
  FUZZ_REQUIRE(directories.size() == segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const bool last = i + 1 == segments.size();
    FUZZ_REQUIRE(directories[i] == segments[i] + (last ? "" : ","));
    FUZZ_REQUIRE(!file::parse_queue_file_name(directories[i]) || last);
    // A lock below another lock must not be mistaken for an entry of that lock.
    FUZZ_REQUIRE(!zk::sequence_of(segments[i]), segments[i]);
  }
  for (const std::string root : {"", "/app"}) {
    const auto directory = zk::lock_directory(root, name.text());
    const auto ancestors = zk::ancestors_of(directory);
    FUZZ_REQUIRE(ancestors.back() == directory);
    FUZZ_REQUIRE(ancestors.size() == segments.size() + (root.empty() ? 0 : 1));
    const auto prefix = etcd::lock_prefix(root, name.text());
    const auto key = etcd::entry_key(prefix, 0x1234, etcd::KeySlot{7});
    FUZZ_REQUIRE(etcd::is_direct_entry(prefix, key));
    FUZZ_REQUIRE(etcd::lock_of_key(root, key) == name.text());
    FUZZ_REQUIRE(key < etcd::range_end_of(prefix) && key > prefix);
    const auto id = etcd::parse_entry_id(etcd::format_entry_id(prefix, key, 9));
    FUZZ_REQUIRE(id && prefix + id->suffix == key && id->revision == 9);
  }
}

void check_prefixes(std::string_view text, bool is_legal) {
  const auto prefix = parse_name_prefix(text);
  if (!prefix) {
    FUZZ_REQUIRE(prefix.error().errc() == Errc::invalid_name);
    for (const char* more : {"", "a", "/a", "0"}) FUZZ_REQUIRE(!legal(std::string(text) + more));
  }
  for (std::size_t size = 0; is_legal && size <= text.size(); ++size) {
    FUZZ_REQUIRE(parse_name_prefix(text.substr(0, size)).has_value());
  }
}

void check_encoding(std::string_view text) {
  const auto name = encode_name(text);
  FUZZ_REQUIRE(legal(name) && is_valid_name(name), name);
  FUZZ_REQUIRE(name == encode_name(text));
  const auto hash = name.find("/==");
  if (hash == name.npos) {
    FUZZ_REQUIRE(decode(name) == text, name);
    return;
  }
  FUZZ_REQUIRE(name.size() - hash == 3 + 64);
  // The hash makes the names of two similar long texts different.
  auto other = std::string(text);
  other.back() = static_cast<char>(other.back() ^ 1);
  FUZZ_REQUIRE(encode_name(other) != name);
}

}  // namespace
}  // namespace baton::internal

FUZZ_TARGET(names) {
  using namespace baton::internal;
  const bool is_legal = legal(input);
  FUZZ_REQUIRE(baton::is_valid_name(input) == is_legal, escape_for_message(input, 500));
  const auto name = parse_lock_name(input);
  FUZZ_REQUIRE(name.has_value() == is_legal);
  if (name) {
    FUZZ_REQUIRE(name->text() == input);
    check_stores(*name);
  } else {
    FUZZ_REQUIRE(name.error().errc() == baton::Errc::invalid_name);
    FUZZ_REQUIRE(shown_safely(name.error().what()));
    FUZZ_REQUIRE(std::string_view(name.error().what()).size() < 300);
  }
  check_prefixes(input, is_legal);
  check_encoding(input);
  for (const std::size_t limit : {std::size_t{0}, std::size_t{3}, std::size_t{64}}) {
    const auto shown = escape_for_message(input, limit);
    FUZZ_REQUIRE(shown_safely(shown) && shown.size() <= limit + 3);
  }
}
