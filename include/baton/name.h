// Lock names: the rule for legal names, and a way to make one from any text.
#pragma once

#include <baton/version.h>

#include <string>
#include <string_view>

namespace baton {

// Returns whether `name` is a lock name. No I/O. The rule is the same on every store:
//  - 1 to 8 segments joined by '/', at most 400 bytes in all;
//  - each segment has 1 to 100 bytes of A-Z a-z 0-9 . _ : @ = + - and is not "." or "..";
//  - no segment ends in "-lock-" or "__lock__" and digits, because it would look like an entry of a
//    queue. The same holds with a minus and 9 or 10 digits, which is how ZooKeeper writes a counter
//    that has wrapped.
//
//   baton::is_valid_name("orders/7");   // true
//   baton::is_valid_name("orders//7");  // false: an empty segment
//   baton::is_valid_name("my order");   // false: a space
BATON_API bool is_valid_name(std::string_view name) noexcept;

// Returns a legal name for any text, the empty text included. Different texts give different names
// (as far as SHA-256 does). The same text gives the same name in every process.
//  - Every byte that is not in the alphabet above becomes =XX, its value in hex. So do '=' and '/',
//    a '.' that would begin a segment, and the k of "lock-" and "lock_".
//  - If that is longer than 397 bytes, its first 200 bytes are kept; "==" and the SHA-256 of the
//    text follow as a segment of their own.
//  - A '/' is inserted after each 100 bytes.
//  - The empty text becomes "=". All other texts stay as they are.
//
//   baton::encode_name("invoice-7");  // "invoice-7"
//   baton::encode_name("a b/c");      // "a=20b=2Fc": one segment
//   auto mutex = client.mutex(baton::encode_name(email));
BATON_API std::string encode_name(std::string_view text);

}  // namespace baton
