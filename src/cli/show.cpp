// ls and show: print the locks and entries that are in the store now.
#include <baton/baton.h>

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <vector>

#include "commands.h"
#include "errors.h"
#include "json.h"
#include "store.h"
#include "text.h"

namespace baton::cli {

void print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) throw os_failure("cannot write to stdout", errno);
}

std::string describe(const LockSnapshot& snapshot, std::chrono::system_clock::time_point now) {
  if (snapshot.entries.empty()) return snapshot.name + " is free\n";
  const std::size_t waiting = snapshot.entries.size() - 1;
  std::string out =
      snapshot.name + " is held, " +
      (waiting == 0 ? std::string("no waiters") : std::to_string(waiting) + " waiting") + "\n";
  std::vector<std::vector<std::string>> rows{{"", "#", "LABEL", "TOKEN", "SINCE", "ID"}};
  for (std::size_t i = 0; i < snapshot.entries.size(); ++i) {
    const Entry& entry = snapshot.entries[i];
    rows.push_back({i == 0 ? "*" : " ", std::to_string(i + 1), escape_controls(entry.label),
                    std::to_string(entry.token), format_since(entry.since, now),
                    escape_controls(entry.id)});
  }
  return out + format_table(rows);
}

int show_command(const Args& args) {
  Client client = connect(args);
  const LockSnapshot snapshot = client.inspect(args.name);
  print(args.json ? dump(to_json(snapshot)) + "\n"
                  : describe(snapshot, std::chrono::system_clock::now()));
  return kOk;
}

int ls_command(const Args& args) {
  Client client = connect(args);
  const std::vector<std::string> names = client.list(args.prefix);
  if (args.json) {
    print(dump(Json(names)) + "\n");
    return kOk;
  }
  std::string out;
  for (const std::string& name : names) out += escape_controls(name) + "\n";
  print(out);
  if (names.empty() && isatty(STDOUT_FILENO) != 0) say("no lock has a holder or waiters");
  return kOk;
}

}  // namespace baton::cli
