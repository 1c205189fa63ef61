// Lock names: what is legal, and how to make a legal one of any text.
#pragma once

#include <baton/version.h>

#include <string>
#include <string_view>

namespace baton {

// A lock name is 1 to 8 segments joined by '/', each 1 to 100 bytes of
//   A-Z a-z 0-9 . _ : @ = + -
// not "." or "..", 400 bytes in all. A segment that ends in "-lock-" or "__lock__" and digits is
// refused, because it would look like an entry of a queue; likewise with a minus and 9 or 10 digits
// (a counter of ZooKeeper's that has wrapped). The rule is the same on every store.
BATON_API bool is_valid_name(std::string_view name) noexcept;

// Makes a legal name of any text, the empty one included. Two different texts give two different
// names: bytes outside the alphabet, '=' and '/' become =XX; a text too long for a name keeps its
// beginning and ends in its SHA-256. A text without special bytes stays as it is.
BATON_API std::string encode_name(std::string_view text);

}  // namespace baton
