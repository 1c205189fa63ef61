// What the locks of a run protect: a number in a small file, that refuses those who come too late.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace baton::chaos {

// The number and the greatest token it has been shown. Each step is one critical section of a
// kernel lock; between the steps nothing but the distributed lock protects. Reading shows a token
// too: otherwise an older writer could come between a newer one's read and its write.
class ProtectedRegister {
 public:
  // Throws std::system_error, as all calls do, if the file cannot be used.
  ProtectedRegister(std::string path, bool checks_tokens);

  // nullopt, false: refused, because a greater token was seen.
  std::optional<std::uint64_t> read(std::uint64_t token) const;
  bool write(std::uint64_t token, std::uint64_t value) const;

 private:
  const std::string path_;
  const bool checks_tokens_;
};

// Where that of a lock is, in the directory of a run; and what stands there now.
std::string register_path(const std::string& directory, std::uint32_t lock);
std::uint64_t register_value(const std::string& directory, std::uint32_t lock);

}  // namespace baton::chaos
