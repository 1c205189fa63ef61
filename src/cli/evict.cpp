// evict: shows one entry, asks for confirmation and removes the entry by force.
#include <baton/baton.h>

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>

#include "commands.h"
#include "errors.h"
#include "json.h"
#include "store.h"
#include "text.h"

namespace baton::cli {

namespace {

bool confirmed(const LockSnapshot& snapshot, const Entry& entry) {
  const bool holds = &entry == snapshot.entries.data();
  std::cerr << (holds ? "The holder of " : "A waiter of ") << snapshot.name << ":\n"
            << format_table(
                   {{"  label", escape_controls(entry.label)},
                    {"  token", std::to_string(entry.token)},
                    {"  since", format_since(entry.since, std::chrono::system_clock::now())},
                    {"  id", escape_controls(entry.id)}})
            << (holds ? "It may still be working under the lock. " : "") << "Remove it? [y/N] "
            << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

int report(const Args& args, bool evicted, const std::string& why_not) {
  if (args.json) {
    Json out;
    out["name"] = args.name;
    out["entry"] = args.entry;
    out["evicted"] = evicted;
    print(dump(out) + "\n");
  }
  if (!evicted) {
    say(why_not);
    return kFailed;
  }
  if (!args.json) print("removed " + escape_controls(args.entry) + " from " + args.name + "\n");
  return kOk;
}

}  // namespace

int evict_command(const Args& args) {
  if (!args.yes && isatty(STDIN_FILENO) == 0) {
    throw Failure(kUsage,
                  "evict: cannot ask for confirmation without a terminal; add --yes to evict "
                  "without asking");
  }
  const std::string missing =
      "evict: " + args.name + " has no entry " + args.entry + "; baton show prints the ids";
  Client client = connect(args);
  if (!args.yes) {
    const LockSnapshot snapshot = client.inspect(args.name);
    const auto entry = std::find_if(snapshot.entries.begin(), snapshot.entries.end(),
                                    [&](const Entry& e) { return e.id == args.entry; });
    if (entry == snapshot.entries.end()) return report(args, false, missing);
    if (!confirmed(snapshot, *entry)) return report(args, false, "evict: nothing was removed");
  }
  return report(args, client.evict(args.name, args.entry), missing);
}

}  // namespace baton::cli
