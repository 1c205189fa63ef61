// Simulates years of use: sets the counter from which a ZooKeeper server numbers the entries of a
// directory. No request can set it, so this code edits the log of changes, which the server reads
// when it starts.
#pragma once

#include "support/zk_server.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace baton::chaos {

namespace forge {

inline std::int64_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < size; ++i) n = n << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return static_cast<std::int64_t>(size == 4 ? static_cast<std::uint32_t>(n) : n);
}

inline void put_number(std::string& bytes, std::size_t at, std::size_t size, std::uint64_t n) {
  for (std::size_t i = size; i-- > 0; n >>= 8) bytes.at(at + i) = static_cast<char>(n & 0xff);
}

// The server's checksum of a record.
inline std::uint64_t adler32(std::string_view bytes) {
  std::uint64_t a = 1;
  std::uint64_t b = 0;
  for (const char c : bytes) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

// The position of the directory's new counter in the record of a change. nullopt: the change does
// not create an entry of this directory.
inline std::optional<std::size_t> counter_in(std::string_view record,
                                             const std::string& directory) {
  constexpr std::size_t kHead = 8 + 4 + 8 + 8;  // session, request number, zxid, time
  const auto type = number_at(record, kHead, 4);
  if (type != 1 && type != 15) return std::nullopt;  // create, create2
  std::size_t at = kHead + 4;
  const auto skip = [&] {  // skips a text or bytes; the length -1 means none
    const auto size = number_at(record, at, 4);
    at += 4 + (size == 0xffffffff ? 0 : static_cast<std::size_t>(size));
  };
  const std::size_t path = at + 4;
  skip();
  if (!record.substr(path, at - path).starts_with(directory + "/")) return std::nullopt;
  skip();  // data
  const auto rights = number_at(record, at, 4);
  at += 4;
  for (std::int64_t i = 0; i < rights; ++i) {
    at += 4;
    skip();
    skip();
  }
  return at + 1;  // skips the byte "ephemeral"
}

}  // namespace forge

// The next entry in the directory will get the number `next`. The server must be stopped, and
// exactly one of its logs must have an entry of the directory. Otherwise it throws.
inline void forge_next_number(const test::ZkEnsemble& servers, int i, const std::string& directory,
                              std::int32_t next) {
  if (servers.running(i)) throw std::logic_error("forge: the server runs");
  const auto home = std::filesystem::path(servers.log(i)).parent_path();
  int changed = 0;
  for (const auto& file : std::filesystem::directory_iterator(home / "data" / "version-2")) {
    if (!file.path().filename().string().starts_with("log.")) continue;
    std::fstream log(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    std::string bytes(file.file_size(), '\0');
    log.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    std::optional<std::size_t> last;  // the record with the newest counter
    std::size_t counter = 0;
    // A log has a head of 16 bytes. Each record has a checksum, a length, the data and one more
    // byte. Zeros follow the last record.
    for (std::size_t at = 16; at + 12 < bytes.size();) {
      const auto size = static_cast<std::size_t>(forge::number_at(bytes, at + 8, 4));
      if (size == 0) break;
      const auto record = std::string_view(bytes).substr(at + 12, size);
      if (const auto found = forge::counter_in(record, directory)) {
        last = at;
        counter = at + 12 + *found;
      }
      at += 12 + size + 1;
    }
    if (!last) continue;
    forge::put_number(bytes, counter, 4, static_cast<std::uint32_t>(next));
    const auto size = static_cast<std::size_t>(forge::number_at(bytes, *last + 8, 4));
    const auto record = std::string_view(bytes).substr(*last + 12, size);
    forge::put_number(bytes, *last, 8, forge::adler32(record));
    log.seekp(static_cast<std::streamoff>(*last));
    log.write(bytes.data() + *last, static_cast<std::streamsize>(12 + size));
    if (!log.flush()) throw std::runtime_error("forge: cannot write " + file.path().string());
    ++changed;
  }
  if (changed != 1) throw std::runtime_error("forge: no entry of " + directory + " in the log");
}

}  // namespace baton::chaos
