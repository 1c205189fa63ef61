#include "zk/path.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>

namespace baton::zk {

namespace {

constexpr std::string_view kOurs = "-lock-";  // the same as Curator's
constexpr std::string_view kKazoos = "__lock__";
constexpr std::string_view kVersion = "baton/1 ";
constexpr std::size_t kLongestLabel = 256;

// 64 characters that are safe in paths and on command lines.
constexpr std::string_view kAlphabet =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._";

std::optional<std::int64_t> number_after(std::string_view child, std::string_view mark) {
  const auto at = child.rfind(mark);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view digits = child.substr(at + mark.size());
  const bool wrapped = digits.starts_with('-');
  if (wrapped) digits.remove_prefix(1);
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  // A server writes at least ten characters, including the minus. A shorter negative number is part
  // of a name: a lock may be named "x-lock--5".
  if (digits.size() < (wrapped ? 9 : 1) || digits.size() > 10) return std::nullopt;
  if (!std::all_of(digits.begin(), digits.end(), digit)) return std::nullopt;
  std::int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  // After an overflow the counter continues at -2147483648. These numbers are later than all
  // others.
  return wrapped ? (std::int64_t{1} << 32) - std::min(number, kLastSequence + 1) : number;
}

}  // namespace

std::string lock_directory(std::string_view root, std::string_view lock) {
  return std::string(root) + "/" + std::string(lock);
}

std::vector<std::string> ancestors_of(std::string_view directory) {
  std::vector<std::string> all;
  for (auto slash = directory.find('/', 1); slash != std::string_view::npos;
       slash = directory.find('/', slash + 1)) {
    all.emplace_back(directory.substr(0, slash));
  }
  all.emplace_back(directory);
  return all;
}

std::string format_client_id(std::uint64_t random) {
  std::string id;
  for (int i = 0; i < 8; ++i, random >>= 6) id += kAlphabet[random & 63];
  return id;
}

std::string format_entry_id(std::string_view client, Nonce nonce) {
  std::string id(client);
  auto rest = static_cast<std::uint64_t>(nonce);
  do {
    id += kAlphabet[rest & 63];
    rest >>= 6;
  } while (rest != 0);
  return id;
}

std::string entry_prefix(std::string_view entry_id) {
  return std::string(entry_id) + std::string(kOurs);
}

std::optional<std::int64_t> sequence_of(std::string_view child) {
  if (const auto number = number_after(child, kOurs)) return number;
  return number_after(child, kKazoos);
}

Queue make_queue(const std::vector<std::string>& children) {
  Queue queue;
  queue.entries.reserve(children.size());
  for (const auto& child : children) {
    if (const auto number = sequence_of(child)) {
      queue.entries.push_back({*number, child});
    } else {
      ++queue.others;
    }
  }
  std::sort(queue.entries.begin(), queue.entries.end(),
            [](const QueueEntry& a, const QueueEntry& b) {
              return std::tie(a.sequence, a.name) < std::tie(b.sequence, b.name);
            });
  return queue;
}

std::optional<Position> position_of(const Queue& queue, std::int64_t sequence,
                                    std::string_view name) {
  const auto [first, last] = std::equal_range(
      queue.entries.begin(), queue.entries.end(), QueueEntry{sequence, {}},
      [](const QueueEntry& a, const QueueEntry& b) { return a.sequence < b.sequence; });
  const auto mine = std::find_if(first, last, [&](const QueueEntry& e) { return e.name == name; });
  if (mine == last) return std::nullopt;
  Position position;
  position.ahead = static_cast<std::size_t>(last - queue.entries.begin()) - 1;
  if (position.ahead != 0) {
    // With ties, the last of the other entries with our number; otherwise the entry directly before
    // ours.
    auto before = last - 1;
    if (before == mine) --before;
    position.predecessor = &*before;
  }
  return position;
}

std::uint64_t rank_of(std::int64_t sequence, bool mine) noexcept {
  return 2 * (static_cast<std::uint64_t>(sequence) + 1) + (mine ? 1 : 0);
}

std::string encode_label(std::string_view label) {
  return std::string(kVersion) + std::string(label);
}

std::optional<std::string> decode_label(std::string_view data) {
  if (!data.starts_with(kVersion)) return std::nullopt;
  data.remove_prefix(kVersion.size());
  return std::string(data.substr(0, kLongestLabel));
}

}  // namespace baton::zk
