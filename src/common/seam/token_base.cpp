#include "common/seam/token_base.h"

#include "common/seam/lock_name.h"

#include <algorithm>
#include <charconv>

namespace baton::internal {

namespace {
constexpr std::string_view kBaseVersion = "baton/1 ";
}  // namespace

std::optional<std::uint64_t> parse_token_base(std::string_view digits) {
  std::uint64_t base = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), base);
  if (error != std::errc() || end != digits.data() + digits.size() || base > kMaxTokenBase) {
    return std::nullopt;
  }
  return base;
}

std::string encode_token_base(std::uint64_t base) {
  return std::string(kBaseVersion) + std::to_string(base);
}

std::optional<std::uint64_t> decode_token_base(std::string_view record) {
  if (!record.starts_with(kBaseVersion)) return std::nullopt;
  return parse_token_base(record.substr(kBaseVersion.size()));
}

Result<std::uint64_t> read_token_base(std::string_view record, std::string_view where) {
  if (const auto base = decode_token_base(record)) return *base;
  return Error(Errc::store_error,
               "token base: " + std::string(where) + " contains \"" +
                   escape_for_message(record, 40) +
                   "\", which this version of baton cannot read; restore the record, or update "
                   "baton");
}

Result<std::uint64_t> add_token_base(std::uint64_t base, std::uint64_t token) {
  if (base == 0) return token;
  if (token <= kMaxToken && base <= kMaxToken - token) return base + token;
  return Error(Errc::store_error, "token base " + std::to_string(base) + " and token " +
                                      std::to_string(token) +
                                      " are together above 2^63-1; move the locks to a root with "
                                      "a smaller ?token_base=N");
}

Error token_base_in_use(std::uint64_t wanted, std::string_view lock) {
  return {Errc::invalid_argument,
          "token base: cannot record token_base=" + std::to_string(wanted) + ", because lock \"" +
              std::string(lock) +
              "\" has an entry of a client without it; stop all clients first, or choose a root "
              "without entries"};
}

Error token_base_differs(std::uint64_t wanted, std::uint64_t recorded) {
  const std::string ours = wanted == 0 ? "none" : "token_base=" + std::to_string(wanted);
  const std::string advice = recorded == 0
                                 ? "connect without ?token_base"
                                 : "end the URL with ?token_base=" + std::to_string(recorded);
  return {Errc::invalid_argument, "token base: the URL has " + ours + ", and the store records " +
                                      std::to_string(recorded) +
                                      "; all clients of a store must use the same base: " + advice};
}

}  // namespace baton::internal
