#include "args.h"

#include <baton/name.h>
#include <baton/version.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "errors.h"
#include "help.h"
#include "text.h"

namespace baton::cli {

namespace {

// Not "", because an empty value can be given, as in --timeout "$UNSET", and must be refused.
constexpr const char* kNotGiven = "\n";

// The durations as text. They are parsed after CLI11 has finished.
struct Durations {
  std::string timeout = kNotGiven, grace = kNotGiven, session_timeout = kNotGiven,
              connect_timeout = kNotGiven;
};

constexpr std::string_view kGlobalsWithValue[] = {
    "--url",           "--cacert",          "--cert",           "--key", "--user", "--label",
    "--password-file", "--session-timeout", "--connect-timeout"};

constexpr const char* kNeverEmpty[] = {"--url",    "--user", "--password-file",
                                       "--cacert", "--cert", "--key"};

// The index of the first "--" if the command word is run, else the number of words. CMD follows it.
// CLI11 must not see CMD: it would split words like "[a,b]" and parse the options of CMD.
std::size_t find_job(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (std::count(std::begin(kGlobalsWithValue), std::end(kGlobalsWithValue), words[i]) > 0) {
      ++i;  // its value
    } else if (words[i].empty() || words[i][0] != '-') {
      if (words[i] != "run") break;
      const auto mark = std::find(words.begin(), words.end(), "--");
      return static_cast<std::size_t>(mark - words.begin());
    }
  }
  return words.size();
}

void add_globals(CLI::App& app, Args& args, Durations& durations) {
  app.add_option("--url", args.url, "The store: file:///DIR, zk://HOSTS/ROOT, etcd://HOSTS/ROOT")
      ->type_name("URL");
  app.add_flag("--json", args.json, "Print JSON");
  app.add_option("--label", args.label,
                 "Name of this client in the output of show (default HOST:PID)");
  app.add_option("--session-timeout", durations.session_timeout,
                 "How long the lock of a dead holder stays locked (default 10s)")
      ->type_name("TIME");
  app.add_option("--connect-timeout", durations.connect_timeout,
                 "How long to wait for an answer of the store (default 5s)")
      ->type_name("TIME");
  app.add_option("--cacert", args.cacert, "TLS: certificates of the authorities to trust")
      ->type_name("FILE");
  app.add_option("--cert", args.cert, "TLS: certificate of this client")->type_name("FILE");
  app.add_option("--key", args.key, "TLS: private key of this client")->type_name("FILE");
  app.add_option("--user", args.user, "User name at the store");
  app.add_option("--password-file", args.password_file,
                 "Its first line is the password (or set BATON_PASSWORD)")
      ->type_name("FILE");
  app.add_flag("--plaintext-auth", args.plaintext_auth,
               "zk: allow sending the password over the network without encryption");
  app.add_flag("--persistent-parents", args.persistent_parents,
               "zk: keep lock directories that are empty (needed if kazoo shares the locks)");
}

CLI::App* add_command(CLI::App& app, const char* name, const char* text, const char* footer) {
  CLI::App* command = app.add_subcommand(name, text);
  command->fallthrough();  // global options may follow the command word
  command->footer(footer);
  return command;
}

void add_name(CLI::App* command, Args& args) {
  command->add_option("NAME", args.name, "The lock, such as billing/invoices")
      ->required()
      ->type_name("");
}

void add_run(CLI::App& app, Args& args, Durations& durations, bool& once) {
  CLI::App* run = add_command(app, "run", "Run a command while holding a lock", kRunHelp);
  add_name(run, args);
  auto* timeout =
      run->add_option("--timeout", durations.timeout, "Wait for the lock at most this long")
          ->type_name("TIME");
  run->add_flag("-n,--nonblock", once, "Try once, do not wait")->excludes(timeout);
  run->add_option("--grace", durations.grace,
                  "Time between TERM and KILL when the lock may be lost soon "
                  "(default: a quarter of the session timeout, at most 5s)")
      ->type_name("TIME");
}

void read_duration(const char* option, const std::string& text,
                   std::optional<std::chrono::milliseconds>& out) {
  if (text == kNotGiven) return;
  out = parse_duration(text);
  if (!out) {
    throw Failure(kUsage, std::string(option) + ": \"" + text +
                              "\" is not a duration; write 30s, 500ms, 2m or 1h");
  }
}

// Refuses an empty value, as from --url "$UNSET": the default would be another store than the
// caller meant. Call it before CLI11 reads the words: CLI11 takes the word after "--url=" as the
// value.
void refuse_empty(const std::vector<std::string>& ours) {
  for (std::size_t i = 0; i < ours.size(); ++i) {
    for (const std::string name : kNeverEmpty) {
      const bool next_is_empty = i + 1 < ours.size() && ours[i + 1].empty();
      if (ours[i] != name + "=" && (ours[i] != name || !next_is_empty)) continue;
      throw Failure(kUsage, name +
                                ": the value is empty; leave the option out, or check the variable "
                                "that the value comes from");
    }
  }
}

std::string url_from_environment() {
  const char* url = std::getenv("BATON_URL");
  if (url == nullptr) return {};
  if (*url == '\0') {
    throw Failure(kUsage,
                  "BATON_URL is set, but empty; unset it to use the default store, or set it to "
                  "the URL of a store");
  }
  return url;
}

void check(const Args& args) {
  const bool named = args.command != Command::ls && args.command != Command::doctor;
  if (named && !is_valid_name(args.name)) {
    throw Failure(kUsage, "\"" + args.name +
                              "\" is not a lock name: 1 to 8 segments joined by '/', each of "
                              "1 to 100 letters, digits and . _ : @ = + -");
  }
  if (args.command == Command::run && args.job.empty()) {
    throw Failure(kUsage, "run: no command; write it after --, as in: baton run NAME -- make all");
  }
  if (args.command == Command::run && args.job[0].empty()) {
    throw Failure(kUsage, "run: the command is empty; check the variable that it comes from");
  }
  if (args.command == Command::run && args.url.starts_with("memory:")) {
    throw Failure(kUsage, "run: " + args.url +
                              " exists only in this process and locks out no other process; use "
                              "a store of file://, zk:// or etcd://");
  }
}

Command command_of(const CLI::App& app) {
  const std::string name = app.get_subcommands().at(0)->get_name();
  if (name == "run") return Command::run;
  if (name == "show") return Command::show;
  if (name == "watch") return Command::watch;
  if (name == "evict") return Command::evict;
  if (name == "doctor") return Command::doctor;
  return Command::ls;
}

}  // namespace

std::optional<Args> parse_args(const std::vector<std::string>& words) {
  Args args;
  Durations durations;
  bool once = false;

  CLI::App app("baton: locks across processes and machines", "baton");
  app.set_version_flag("--version", std::string("baton ") + BATON_VERSION_STRING);
  app.require_subcommand(1);
  app.footer(kMainHelp);
  add_globals(app, args, durations);
  add_run(app, args, durations, once);
  CLI::App* ls = add_command(app, "ls", "List the locks that have a holder or waiters", kLsHelp);
  ls->add_option("PREFIX", args.prefix, "Only names that begin with this")->type_name("");
  add_name(add_command(app, "show", "Show a lock's holder and waiters, in order", kShowHelp), args);
  add_name(add_command(app, "watch", "Show a lock live", kWatchHelp), args);
  CLI::App* evict = add_command(app, "evict", "Remove an entry by force", kEvictHelp);
  add_name(evict, args);
  evict->add_option("ENTRY", args.entry, "The entry's id, as show prints it")
      ->required()
      ->type_name("");
  evict->add_flag("-y,--yes", args.yes, "Do not ask for confirmation");
  add_command(app, "doctor", "Check the connection to the store", kDoctorHelp);

  const std::size_t mark = find_job(words);
  std::vector<std::string> ours(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(mark));
  if (mark < words.size()) {
    args.job.assign(words.begin() + static_cast<std::ptrdiff_t>(mark) + 1, words.end());
  }
  refuse_empty(ours);
  std::reverse(ours.begin(), ours.end());  // CLI11 expects the words in reverse order
  try {
    app.parse(std::move(ours));
  } catch (const CLI::Success& done) {  // --help, --version
    app.exit(done, std::cout, std::cout);
    std::cout.flush();
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw Failure(kUsage, std::string(error.what()) + " (try baton --help)");
  }

  args.command = command_of(app);
  read_duration("--timeout", durations.timeout, args.timeout);
  read_duration("--grace", durations.grace, args.grace);
  read_duration("--session-timeout", durations.session_timeout, args.session_timeout);
  read_duration("--connect-timeout", durations.connect_timeout, args.connect_timeout);
  if (once) args.timeout = std::chrono::milliseconds(0);
  if (args.url.empty()) args.url = url_from_environment();
  check(args);
  return args;
}

}  // namespace baton::cli
