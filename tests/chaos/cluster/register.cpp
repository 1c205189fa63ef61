#include "chaos/cluster/register.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace baton::chaos {
namespace {

struct Content {
  std::uint64_t value = 0;
  std::uint64_t seen = 0;  // the greatest token seen
};

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// The file, opened for one step. The kernel lock belongs to the open file description, so it
// excludes the threads of one process, too.
class Opened {
 public:
  explicit Opened(const std::string& path)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (fd_ < 0) fail("open " + path);
    while (::flock(fd_, LOCK_EX) != 0) {
      if (errno != EINTR) fail("flock " + path);
    }
  }
  ~Opened() { ::close(fd_); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  Content get() const {
    Content content;
    const auto size = ::pread(fd_, &content, sizeof content, 0);
    if (size != 0 && size != static_cast<ssize_t>(sizeof content)) fail("read the register");
    return content;
  }
  void put(const Content& content) const {
    if (::pwrite(fd_, &content, sizeof content, 0) != static_cast<ssize_t>(sizeof content)) {
      fail("write the register");
    }
  }

 private:
  int fd_;
};

}  // namespace

ProtectedRegister::ProtectedRegister(std::string path, bool checks_tokens)
    : path_(std::move(path)), checks_tokens_(checks_tokens) {}

std::optional<std::uint64_t> ProtectedRegister::read(std::uint64_t token) const {
  const Opened file(path_);
  auto content = file.get();
  if (checks_tokens_ && token < content.seen) return std::nullopt;
  content.seen = std::max(content.seen, token);
  file.put(content);
  return content.value;
}

bool ProtectedRegister::write(std::uint64_t token, std::uint64_t value) const {
  const Opened file(path_);
  const auto content = file.get();
  if (checks_tokens_ && token < content.seen) return false;
  file.put({value, std::max(content.seen, token)});
  return true;
}

std::string register_path(const std::string& directory, std::uint32_t lock) {
  return directory + "/register" + std::to_string(lock);
}

std::uint64_t register_value(const std::string& directory, std::uint32_t lock) {
  return *ProtectedRegister(register_path(directory, lock), false).read(0);
}

}  // namespace baton::chaos
