// FencedRow: stands for a database row that checks tokens. A file holds the value and the greatest
// recorded token. In a database each call is a single statement.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace example {

class FencedRow {
 public:
  explicit FencedRow(std::string file) : file_(std::move(file)) {}

  // Step 1, before the read: records the token. From now on writes with smaller tokens are refused.
  // False: refused, because a greater token is recorded.
  //   UPDATE ... SET fence = :token WHERE id = :id AND fence <= :token
  bool record(std::uint64_t token) {
    const Statement statement(file_);
    const Content now = content();
    if (now.fence > token) return false;
    set({token, now.value});
    return true;
  }

  // Step 2.
  //   SELECT value FROM ... WHERE id = :id
  std::string read() const {
    const Statement statement(file_);
    return content().value;
  }

  // Step 3: writes the value that was computed from the read. False: refused, because another token
  // is recorded.
  //   UPDATE ... SET value = :value WHERE id = :id AND fence = :token
  bool write(std::uint64_t token, const std::string& value) {
    const Statement statement(file_);
    if (content().fence != token) return false;
    set({token, value});
    return true;
  }

 private:
  struct Content {
    std::uint64_t fence = 0;
    std::string value;
  };

  // While it lives, no other process runs a statement on this row.
  class Statement {
   public:
    explicit Statement(const std::string& file)
        : guard_(open((file + ".guard").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
      if (guard_ < 0 || flock(guard_, LOCK_EX) != 0) throw std::runtime_error("cannot open row");
    }
    ~Statement() { close(guard_); }
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

   private:
    int guard_;
  };

  Content content() const {
    Content content;
    std::ifstream in(file_);
    in >> content.fence;
    in.ignore(1);
    std::getline(in, content.value);
    return content;
  }
  void set(const Content& content) {
    std::ofstream out(file_);
    out << content.fence << ' ' << content.value << '\n';
    if (!out.flush()) throw std::runtime_error("cannot write row");
  }

  std::string file_;
};

}  // namespace example
