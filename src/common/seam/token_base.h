// The token base: ?token_base=N of a URL, added to every token, and its record in the store. Pure.
#pragma once

#include <baton/error.h>
#include <baton/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::internal {

// The largest base. Base and token together fit a signed 64-bit column: kMaxToken.
inline constexpr std::uint64_t kMaxTokenBase = std::uint64_t{1} << 62;
inline constexpr std::uint64_t kMaxToken = INT64_MAX;

// The record's name below the root. `~` is in no lock name.
inline constexpr std::string_view kTokenBaseName = "~token_base";

// The record: "baton/1 " and the base in decimal. Nothing: this version cannot read it.
std::string encode_token_base(std::uint64_t base);
std::optional<std::uint64_t> decode_token_base(std::string_view record);
// The same with Error(store_error). where: the record's key, node or file, for the message.
Result<std::uint64_t> read_token_base(std::string_view record, std::string_view where);

// Digits alone, at most kMaxTokenBase.
std::optional<std::uint64_t> parse_token_base(std::string_view digits);

// The token that users see. With a base, Error(store_error) above kMaxToken: a resource with a
// signed column would take it for a negative number.
Result<std::uint64_t> add_token_base(std::uint64_t base, std::uint64_t token);

// Error(invalid_argument): nothing is recorded, and a lock has an entry.
Error token_base_in_use(std::uint64_t wanted, std::string_view lock);
// Error(invalid_argument): the store records another base than the client's URL says.
Error token_base_differs(std::uint64_t wanted, std::uint64_t recorded);

}  // namespace baton::internal
