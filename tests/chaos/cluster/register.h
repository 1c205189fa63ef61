// The resource that the locks of a run protect: a number in a small file that refuses old tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace baton::chaos {

// The file holds the number and the greatest token seen. Each call is one critical section under a
// kernel lock. Between two calls only the distributed lock protects the number. read() also takes a
// token: otherwise an older holder could write between the read and the write of a newer holder.
class ProtectedRegister {
 public:
  // Throws std::system_error, as all calls do, if the file cannot be used.
  ProtectedRegister(std::string path, bool checks_tokens);

  // nullopt or false: refused, because a greater token was seen.
  std::optional<std::uint64_t> read(std::uint64_t token) const;
  bool write(std::uint64_t token, std::uint64_t value) const;

 private:
  const std::string path_;
  const bool checks_tokens_;
};

// The path of the register of a lock in the directory of a run, and its current number.
std::string register_path(const std::string& directory, std::uint32_t lock);
std::uint64_t register_value(const std::string& directory, std::uint32_t lock);

}  // namespace baton::chaos
