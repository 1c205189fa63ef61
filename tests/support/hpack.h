// Decodes the headers of HTTP/2 (RFC 7541), as far as needed to find the path of a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace baton::test {

// Reads all header blocks of one direction of one connection, beginning with the first block,
// because later blocks refer to earlier ones.
class HpackReader {
 public:
  // The value of ":path" in this block, "" if there is none. nullopt: the block is malformed, and
  // later blocks cannot be decoded either.
  std::optional<std::string> path_in(std::string_view block);

 private:
  using Header = std::pair<std::string, std::string>;
  std::optional<Header> at(std::uint64_t index) const;
  void keep(Header header);
  void fit();

  std::deque<Header> kept_;  // newest first
  std::size_t size_ = 0;
  std::size_t most_ = 4096;
};

// nullopt: the bytes are not valid Huffman code.
std::optional<std::string> from_huffman(std::string_view bytes);

}  // namespace baton::test
