#include "support/hpack.h"

#include <algorithm>
#include <array>
#include <map>

namespace baton::test {
namespace {

// The names of the static table. The decoder needs only the values of ":path", which at() adds.
constexpr std::array<std::string_view, 61> kNames{":authority",
                                                  ":method",
                                                  ":method",
                                                  ":path",
                                                  ":path",
                                                  ":scheme",
                                                  ":scheme",
                                                  ":status",
                                                  ":status",
                                                  ":status",
                                                  ":status",
                                                  ":status",
                                                  ":status",
                                                  ":status",
                                                  "accept-charset",
                                                  "accept-encoding",
                                                  "accept-language",
                                                  "accept-ranges",
                                                  "accept",
                                                  "access-control-allow-origin",
                                                  "age",
                                                  "allow",
                                                  "authorization",
                                                  "cache-control",
                                                  "content-disposition",
                                                  "content-encoding",
                                                  "content-language",
                                                  "content-length",
                                                  "content-location",
                                                  "content-range",
                                                  "content-type",
                                                  "cookie",
                                                  "date",
                                                  "etag",
                                                  "expect",
                                                  "expires",
                                                  "from",
                                                  "host",
                                                  "if-match",
                                                  "if-modified-since",
                                                  "if-none-match",
                                                  "if-range",
                                                  "if-unmodified-since",
                                                  "last-modified",
                                                  "link",
                                                  "location",
                                                  "max-forwards",
                                                  "proxy-authenticate",
                                                  "proxy-authorization",
                                                  "range",
                                                  "referer",
                                                  "refresh",
                                                  "retry-after",
                                                  "server",
                                                  "set-cookie",
                                                  "strict-transport-security",
                                                  "transfer-encoding",
                                                  "user-agent",
                                                  "vary",
                                                  "via",
                                                  "www-authenticate"};

// The length in bits of the Huffman code of each byte. The codes follow from the lengths: shorter
// codes first, then in the order of the bytes.
constexpr std::array<std::uint8_t, 256> kBits{
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6,  10, 10, 12, 13, 6,  8,  11, 10, 10, 8,  11, 8,  6,  6,  6,
    5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8,  15, 6,  12, 10, 13, 6,  7,  7,  7,  7,  7,  7,
    7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8,  13, 19, 13, 14, 6,
    15, 5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,  6,  7,  6,  5,  5,  6,  7,  7,
    7,  7,  7,  15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26};

using Code = std::pair<int, std::uint32_t>;  // bits, code

std::map<Code, char> make_codes() {
  std::array<int, 256> order;
  for (int i = 0; i < 256; ++i) order[static_cast<std::size_t>(i)] = i;
  std::stable_sort(order.begin(), order.end(), [](int a, int b) {
    return kBits[static_cast<std::size_t>(a)] < kBits[static_cast<std::size_t>(b)];
  });
  std::map<Code, char> codes;
  std::uint32_t next = 0;
  int bits = 0;
  for (const int byte : order) {
    const int wanted = kBits[static_cast<std::size_t>(byte)];
    next <<= wanted - bits;
    bits = wanted;
    codes[{bits, next++}] = static_cast<char>(byte);
  }
  return codes;
}

// Reads from the front of a block. `bad` is set if the block ends too early or is malformed.
struct Taker {
  std::string_view left;
  bool bad = false;

  std::uint8_t byte() {
    if (left.empty()) {
      bad = true;
      return 0;
    }
    const auto first = static_cast<std::uint8_t>(left.front());
    left.remove_prefix(1);
    return first;
  }

  // The number in the low `bits` of the first byte. If these bits are all ones, more bytes follow.
  std::uint64_t number(std::uint8_t first, int bits) {
    const std::uint64_t most = (1U << bits) - 1;
    std::uint64_t value = first & most;
    if (value < most) return value;
    for (int shift = 0; !bad; shift += 7) {
      const std::uint8_t next = byte();
      if (shift > 28) bad = true;
      if (!bad) value += std::uint64_t{next & 0x7fU} << shift;
      if ((next & 0x80) == 0) break;
    }
    return value;
  }

  std::string text() {
    const std::uint8_t first = byte();
    const std::uint64_t size = number(first, 7);
    if (bad || size > left.size()) {
      bad = true;
      return {};
    }
    const std::string_view bytes = left.substr(0, size);
    left.remove_prefix(size);
    if ((first & 0x80) == 0) return std::string(bytes);
    auto decoded = from_huffman(bytes);
    bad = !decoded;
    return decoded.value_or("");
  }
};

}  // namespace

std::optional<std::string> from_huffman(std::string_view bytes) {
  static const std::map<Code, char> codes = make_codes();
  std::string out;
  Code now{0, 0};
  for (const char c : bytes) {
    for (int bit = 7; bit >= 0; --bit) {
      now = {now.first + 1, now.second << 1 | (static_cast<unsigned char>(c) >> bit & 1U)};
      if (now.first > 30) return std::nullopt;
      const auto found = codes.find(now);
      if (found == codes.end()) continue;
      out.push_back(found->second);
      now = {0, 0};
    }
  }
  // The last byte is filled up with ones.
  if (now.first > 7 || now.second != (1U << now.first) - 1) return std::nullopt;
  return out;
}

std::optional<HpackReader::Header> HpackReader::at(std::uint64_t index) const {
  if (index == 0 || index > kNames.size() + kept_.size()) return std::nullopt;
  if (index > kNames.size()) return kept_[index - kNames.size() - 1];
  return Header{kNames[index - 1], index == 4 ? "/" : index == 5 ? "/index.html" : ""};
}

void HpackReader::keep(Header header) {
  size_ += header.first.size() + header.second.size() + 32;
  kept_.push_front(std::move(header));
  fit();
}

void HpackReader::fit() {
  while (size_ > most_) {
    size_ -= kept_.back().first.size() + kept_.back().second.size() + 32;
    kept_.pop_back();
  }
}

std::optional<std::string> HpackReader::path_in(std::string_view block) {
  Taker in{block};
  std::string path;
  while (!in.left.empty()) {
    const std::uint8_t first = in.byte();
    if ((first & 0xe0) == 0x20) {  // a new size of the table
      most_ = in.number(first, 5);
      if (in.bad) return std::nullopt;
      fit();
      continue;
    }
    const bool whole = (first & 0x80) != 0;
    const bool kept = (first & 0xc0) == 0x40;
    const std::uint64_t index = in.number(first, whole ? 7 : kept ? 6 : 4);
    Header header;
    if (whole || index != 0) {
      const auto found = at(index);
      if (!found) return std::nullopt;
      header = *found;
    } else {
      header.first = in.text();
    }
    if (!whole) header.second = in.text();
    if (in.bad) return std::nullopt;
    if (header.first == ":path") path = header.second;
    if (kept) keep(std::move(header));
  }
  return path;
}

}  // namespace baton::test
