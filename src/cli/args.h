// Args: the parsed command line.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace baton::cli {

enum class Command { run, ls, show, watch, evict, doctor };

struct Args {
  Command command = Command::ls;

  // for all commands
  std::string url;  // empty: the default store
  bool json = false;
  std::string cacert, cert, key;
  std::string user, password_file;
  bool plaintext_auth = false;
  bool persistent_parents = false;
  std::string label;  // empty: the library's default
  std::optional<std::chrono::milliseconds> session_timeout;
  std::optional<std::chrono::milliseconds> connect_timeout;

  // for some
  std::string name;                                  // all but ls and doctor
  std::string prefix;                                // ls
  std::string entry;                                 // evict
  bool yes = false;                                  // evict
  std::optional<std::chrono::milliseconds> timeout;  // run; -n is 0
  std::optional<std::chrono::milliseconds> grace;    // run
  std::vector<std::string> job;                      // run: CMD and its arguments, untouched
};

// Reads the command line and BATON_URL. None: --help or --version was given, and the text is
// printed. Throws Failure(kUsage) for every mistake that can be found without asking the store.
std::optional<Args> parse_args(const std::vector<std::string>& words);

}  // namespace baton::cli
