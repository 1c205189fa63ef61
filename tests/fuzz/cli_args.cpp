// Fuzzes the parser of the command line. Any input gives a parsed command, help, or exit code 64,
// and the values arrive unchanged.
#include <baton/name.h>

#include "args.h"
#include "errors.h"
#include "fuzz.h"
#include "text.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace baton::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTenYears{3650LL * 86'400'000};

struct Outcome {
  std::optional<Args> args;
  bool refused = false;
  std::string printed;
};

// Captures std::cout. Only help may be printed there.
Outcome parse(const std::vector<std::string>& words) {
  Outcome outcome;
  std::ostringstream caught;
  std::streambuf* const stdout_was = std::cout.rdbuf(caught.rdbuf());
  try {
    outcome.args = parse_args(words);
  } catch (const Failure& failure) {
    FUZZ_REQUIRE(failure.exit_code() == kUsage);
    FUZZ_REQUIRE(failure.what()[0] != '\0');
    outcome.refused = true;
  }
  std::cout.rdbuf(stdout_was);
  outcome.printed = caught.str();
  // The outcome is exactly one of: a command, a refusal, help.
  FUZZ_REQUIRE(outcome.printed.empty() == (outcome.args || outcome.refused));
  return outcome;
}

void check_time(const std::optional<milliseconds>& time) {
  FUZZ_REQUIRE(!time || (time->count() >= 0 && *time <= kTenYears));
}

void check_command(const Args& args, const std::vector<std::string>& words) {
  const bool named = args.command != Command::ls && args.command != Command::doctor;
  FUZZ_REQUIRE(named ? is_valid_name(args.name) : args.name.empty(), args.name);
  check_time(args.timeout);
  check_time(args.grace);
  check_time(args.session_timeout);
  check_time(args.connect_timeout);
  if (args.command != Command::run) {
    FUZZ_REQUIRE(args.job.empty() && !args.timeout && !args.grace);
    return;
  }
  // The job is every word after a "--", unchanged.
  FUZZ_REQUIRE(!args.job.empty() && !args.job[0].empty());
  FUZZ_REQUIRE(args.job.size() < words.size());
  FUZZ_REQUIRE(std::equal(args.job.rbegin(), args.job.rend(), words.rbegin()));
  FUZZ_REQUIRE(words[words.size() - args.job.size() - 1] == "--");
}

// The value of an option, or a word, arrives unchanged or is refused.
void check_value(const std::string& value) {
  const auto option = [&](const char* flag, std::string Args::*field, bool joined) {
    std::vector<std::string> words{"show", "a"};
    if (joined) {
      words.push_back(std::string(flag) + "=" + value);
    } else {
      words.insert(words.end(), {flag, value});
    }
    const auto outcome = parse(words);
    FUZZ_REQUIRE(outcome.refused || !outcome.args || (*outcome.args).*field == value,
                 std::string(flag) + " " + value + " became " + (*outcome.args).*field);
    return !outcome.refused;
  };
  for (const bool joined : {false, true}) {
    option("--label", &Args::label, joined);
    option("--user", &Args::user, joined);
    option("--password-file", &Args::password_file, joined);
    if (!value.empty()) option("--url", &Args::url, joined);
  }
  const auto evict = parse({"evict", "--yes", "a", "--", value});
  FUZZ_REQUIRE(evict.refused || evict.args->entry == value, value);
  const auto ls = parse({"ls", "--", value});
  FUZZ_REQUIRE(ls.refused || ls.args->prefix == value, value);
  const auto run = parse({"run", "a", "--", "job", value, "--json"});
  FUZZ_REQUIRE(run.args && run.args->job == std::vector<std::string>({"job", value, "--json"}));
  FUZZ_REQUIRE(!run.args->json);
  const auto timed = parse({"run", "a", "--timeout", value, "--", "job"});
  if (timed.args) FUZZ_REQUIRE(timed.args->timeout == parse_duration(value), value);
}

void check_duration(const std::string& text) {
  const auto time = parse_duration(text);
  check_time(time);
  if (!time) return;
  FUZZ_REQUIRE(text[0] >= '0' && text[0] <= '9', text);
  const bool zero = text.find_first_of("123456789") == std::string::npos;
  FUZZ_REQUIRE(zero == (time->count() == 0), text);
  // The duration can be written in milliseconds and parsed again.
  FUZZ_REQUIRE(parse_duration(std::to_string(time->count()) + "ms") == time, text);
}

}  // namespace
}  // namespace baton::cli

FUZZ_TARGET(cli_args) {
  using namespace baton::cli;
  ::unsetenv("BATON_URL");
  // One word on each line, so that people can read the corpus and the dictionary.
  std::vector<std::string> words;
  std::istringstream lines{std::string(input)};
  for (std::string line; std::getline(lines, line);) {
    // A word of the command line ends at its first zero byte.
    words.emplace_back(line.c_str());
  }
  const auto outcome = parse(words);
  if (outcome.args) check_command(*outcome.args, words);
  if (words.empty()) return;
  check_value(words.back());
  check_duration(words.back());
}
