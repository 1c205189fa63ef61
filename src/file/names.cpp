#include "file/names.h"

#include "file/error.h"

#include <sys/random.h>

#include <cerrno>
#include <charconv>

namespace baton::file {

namespace {

template <class T>
std::optional<T> parse_decimal(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

constexpr std::string_view kQueue = "queue.";

}  // namespace

std::string hex16(std::uint64_t value) {
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

std::optional<std::uint64_t> parse_hex16(std::string_view text) {
  if (text.size() != 16) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'a' || c > 'f')) return std::nullopt;
    value = value << 4 | static_cast<std::uint64_t>(digit ? c - '0' : c - 'a' + 10);
  }
  return value;
}

std::string queue_file_name(GenerationId id) {
  return std::string(kQueue) + std::to_string(id.number) + "." + hex16(id.salt);
}

std::optional<GenerationId> parse_queue_file_name(std::string_view name) {
  if (!name.starts_with(kQueue)) return std::nullopt;
  name.remove_prefix(kQueue.size());
  const std::size_t dot = name.find('.');
  if (dot == name.npos) return std::nullopt;
  const auto number = parse_decimal<std::uint32_t>(name.substr(0, dot));
  const auto salt = parse_hex16(name.substr(dot + 1));
  if (!number || *number == 0 || !salt) return std::nullopt;
  return GenerationId{*number, *salt};
}

std::string client_file_name(char kind, ClientId id) {
  return std::string{kind, '.'} + hex16(static_cast<std::uint64_t>(id));
}

std::optional<ClientId> parse_client_file_name(char kind, std::string_view name) {
  if (name.size() != 18 || name[0] != kind || name[1] != '.') return std::nullopt;
  const auto id = parse_hex16(name.substr(2));
  if (!id) return std::nullopt;
  return ClientId{*id};
}

std::string entry_id(ClientId client, std::uint64_t nonce) {
  return hex16(static_cast<std::uint64_t>(client)) + "-" + std::to_string(nonce);
}

std::optional<EntryKey> parse_entry_id(std::string_view text) {
  if (text.size() < 18 || text[16] != '-') return std::nullopt;
  const auto client = parse_hex16(text.substr(0, 16));
  const auto nonce = parse_decimal<std::uint64_t>(text.substr(17));
  if (!client || !nonce) return std::nullopt;
  return EntryKey{ClientId{*client}, *nonce};
}

std::vector<std::string> lock_directories(const LockName& name) {
  std::vector<std::string> directories;
  std::string_view rest = name.text();
  for (;;) {
    const std::size_t slash = rest.find('/');
    if (slash == rest.npos) break;
    directories.push_back(std::string(rest.substr(0, slash)) + ",");
    rest.remove_prefix(slash + 1);
  }
  directories.emplace_back(rest);
  return directories;
}

std::uint64_t hash_text(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

std::uint64_t random_u64() {
  std::uint64_t value = 0;
  while (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
    if (errno != EINTR) throw io_error(errno, "cannot read random bytes");
  }
  return value;
}

}  // namespace baton::file
