// The token base: N of ?token_base=N in a URL. It is added to every token, and recorded in the
// store. Pure.
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

// The record's name below the root. No lock name contains `~`.
inline constexpr std::string_view kTokenBaseName = "~token_base";

// The record: "baton/1 " and the base in decimal. nullopt: this version cannot read the record.
std::string encode_token_base(std::uint64_t base);
std::optional<std::uint64_t> decode_token_base(std::string_view record);
// Like decode_token_base(), but with Error(store_error). where: the record's key, node or file, for
// the message.
Result<std::uint64_t> read_token_base(std::string_view record, std::string_view where);

// Accepts only digits, and at most kMaxTokenBase.
std::optional<std::uint64_t> parse_token_base(std::string_view digits);

// Returns the token that users see. With a base, Error(store_error) if it is above kMaxToken: a
// resource with a signed column would read it as a negative number.
Result<std::uint64_t> add_token_base(std::uint64_t base, std::uint64_t token);

// Error(invalid_argument): no base is recorded, and a lock has an entry.
Error token_base_in_use(std::uint64_t wanted, std::string_view lock);
// Error(invalid_argument): the recorded base differs from the base in the client's URL.
Error token_base_differs(std::uint64_t wanted, std::uint64_t recorded);

}  // namespace baton::internal
