// Makes and parses the names inside the directory of a file store. Only random_u64() makes a system
// call.
//
//   tokens.<boot>                     the token counter of this boot
//   clients/c.<id>  b.<id>  t.<id>    liveness file, bell, unfinished liveness file
//   locks/a,/b/queue.<n>.<salt>       one generation of the queue of lock a/b
//
// The directories of all segments but the last end in ',', which no lock name contains. So the
// locks a and a/b have the directories a and a,/b, and their files never mix.
#pragma once

#include "file/namespace.h"

#include "common/seam/ticket.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::file {

enum class ClientId : std::uint64_t {};

// A generation of a queue. The salt makes sure that no two files ever have the same name. A client
// may decide to unlink a file and be stopped for an hour before it does; even then it unlinks this
// file or none.
struct GenerationId {
  std::uint32_t number = 0;
  std::uint64_t salt = 0;
  auto operator<=>(const GenerationId&) const = default;
};

// How many records a generation holds. It grows with the number: a lock that is used once takes few
// tokens, and a busy lock seldom changes its file.
constexpr std::uint32_t capacity_of(std::uint32_t number) noexcept {
  if (number <= 1) return 64;
  if (number == 2) return 256;
  return number == 3 ? 1024 : 4096;
}

std::string queue_file_name(GenerationId id);
std::optional<GenerationId> parse_queue_file_name(std::string_view name);

std::string client_file_name(char kind, ClientId id);  // kind: 'c', 'b' or 't'
std::optional<ClientId> parse_client_file_name(char kind, std::string_view name);

// The entry id that operators see and pass to evict: "<client>-<nonce>".
std::string entry_id(ClientId client, std::uint64_t nonce);
struct EntryKey {
  ClientId client;
  std::uint64_t nonce;
};
std::optional<EntryKey> parse_entry_id(std::string_view text);

// Directories of a lock below locks/, outermost first.
std::vector<std::string> lock_directories(const LockName& name);

// FNV-1a. The hash of a lock name is what a client writes to a bell. Two locks with the same hash
// cost one unneeded look, nothing else.
std::uint64_t hash_text(std::string_view text) noexcept;

std::string hex16(std::uint64_t value);
std::optional<std::uint64_t> parse_hex16(std::string_view text);

// From the kernel. Throws Error.
std::uint64_t random_u64();

}  // namespace baton::file
