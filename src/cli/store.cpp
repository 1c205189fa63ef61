#include "store.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "errors.h"

namespace baton::cli {

namespace {

std::string home_directory() {
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return home;
  passwd entry{};
  passwd* found = nullptr;
  std::string buffer(16'384, '\0');
  getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr || found->pw_dir == nullptr || found->pw_dir[0] != '/') {
    throw Failure(kUsage,
                  "there is no home directory for the default store; name a store with --url or "
                  "BATON_URL");
  }
  return found->pw_dir;
}

std::string default_directory() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (geteuid() == 0) return "/var/lib/baton";
  // The XDG specification says that a relative path must be ignored.
  if (state != nullptr && state[0] == '/') return std::string(state) + "/baton";
  return home_directory() + "/.local/state/baton";
}

void make_directories(const std::string& path) {
  for (std::size_t end = 1; end != std::string::npos && end < path.size();) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), 0700) == 0 || errno == EEXIST) continue;
    const int error = errno;
    struct stat info {};
    // For an existing directory mkdir() may fail with EROFS or EACCES.
    if (stat(part.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) continue;
    Failure failure =
        os_failure("cannot make the directory " + part + " of the default store", error);
    throw Failure(error == EACCES || error == EPERM ? kNoPermission : kUnavailable,
                  failure.what() + std::string("; name a store with --url or BATON_URL"));
  }
}

// Encodes the path of a file URL: all bytes but plain characters become %XX.
std::string percent_encode(std::string_view path) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || std::string_view("/._~-").find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

}  // namespace

std::string store_url(const Args& args) {
  if (!args.url.empty()) return args.url;
  const std::string directory = default_directory();
  make_directories(directory);
  return "file://" + percent_encode(directory);
}

ClientOptions client_options(const Args& args) {
  ClientOptions options;
  if (args.session_timeout) options.session_timeout = *args.session_timeout;
  if (args.connect_timeout) options.connect_timeout = *args.connect_timeout;
  options.label = args.label;
  options.tls = {args.cacert, args.cert, args.key};
  options.credentials.user = args.user;
  options.credentials.password_file = args.password_file;
  if (args.password_file.empty() && std::getenv("BATON_PASSWORD") != nullptr) {
    options.credentials.password_env = "BATON_PASSWORD";
  }
  options.zookeeper.plaintext_auth = args.plaintext_auth;
  options.zookeeper.persistent_parents = args.persistent_parents;
  options.log = [](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning) say("warning: " + std::string(text));
    if (level == LogLevel::error) say("error: " + std::string(text));
  };
  return options;
}

Client connect(const Args& args) { return Client::connect(store_url(args), client_options(args)); }

}  // namespace baton::cli
