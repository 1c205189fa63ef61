#include "common/base/secret.h"

#include <cstdlib>
#include <fstream>

namespace baton::internal {

namespace {
constexpr std::size_t kLongestPassword = 4096;

Error bad(const std::string& what) { return {Errc::invalid_argument, "credentials: " + what}; }
}  // namespace

Result<std::string> read_password(const Credentials& credentials) {
  std::string password;
  if (!credentials.password_file.empty()) {
    std::ifstream file(credentials.password_file);
    if (!file) return bad("cannot read the password file " + credentials.password_file);
    char c = 0;
    while (password.size() <= kLongestPassword && file.get(c) && c != '\n') password += c;
    if (file.bad()) return bad("cannot read the password file " + credentials.password_file);
    if (!password.empty() && password.back() == '\r') password.pop_back();
    if (password.empty()) {
      return bad("the first line of " + credentials.password_file + " is empty");
    }
  } else if (!credentials.password_env.empty()) {
    const char* const value = std::getenv(credentials.password_env.c_str());
    if (value == nullptr || *value == '\0') {
      return bad("the environment variable " + credentials.password_env + " is not set or empty");
    }
    password = value;
  } else {
    return bad("a user is set without a password; set password_file or password_env");
  }
  if (password.size() > kLongestPassword) return bad("the password is longer than 4096 bytes");
  return password;
}

}  // namespace baton::internal
