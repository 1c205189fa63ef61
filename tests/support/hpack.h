// The headers of HTTP/2 (RFC 7541), as far as it takes to know which call a stream is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace baton::test {

// Reads all header blocks of one direction of one connection, from the first one on: later ones
// refer to what earlier ones said.
class HpackReader {
 public:
  // The value of ":path" in this block, "" if there is none. nullopt: this is no such block; then
  // the ones that follow cannot be understood either.
  std::optional<std::string> path_in(std::string_view block);

 private:
  using Header = std::pair<std::string, std::string>;
  std::optional<Header> at(std::uint64_t index) const;
  void keep(Header header);
  void fit();

  std::deque<Header> kept_;  // the newest first
  std::size_t size_ = 0;
  std::size_t most_ = 4096;
};

// nullopt: not well coded.
std::optional<std::string> from_huffman(std::string_view bytes);

}  // namespace baton::test
