#include "chaos/cluster/arguments.h"

#include "chaos/cluster/controls.h"

#include "support/sanitized.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace baton::chaos {
namespace {

using Words = std::map<std::string, std::string>;

// The options of the command line, with a default for each option that is not given.
Words words_of(int argc, char** argv) {
  Words said{{"--store", "both"},
             {"--seconds", "120"},
             {"--seed", std::to_string(std::random_device()())},
             {"--clients", "16"},
             {"--locks", "4"},
             {"--threads", "2"},
             {"--faults-every", "1500"},
             {"--calm", "12"},
             {"--directory", ""},
             {"--control", ""},
             {"--only", ""},
             {"--report", ""},
             {"--at-least", "0,0"}};
  for (int i = 1; i < argc; i += 2) {
    if (!said.contains(argv[i]) || i + 1 == argc) {
      std::string known;
      for (const auto& [name, value] : said) known += " " + name;
      throw std::invalid_argument(std::string("not understood: ") + argv[i] + "; there is" + known);
    }
    said[argv[i]] = argv[i + 1];
  }
  return said;
}

std::vector<std::string> stores_of(const std::string& word) {
  if (word == "both") return {"zk", "etcd"};
  if (word == "zk" || word == "etcd") return {word};
  throw std::invalid_argument("--store is zk, etcd or both");
}

// "believe=overlap+early-loss,no-token-check=register"
std::vector<Control> controls_of(const std::string& text) {
  std::vector<Control> all;
  std::istringstream list(text);
  for (std::string one; std::getline(list, one, ',');) {
    const auto equals = std::min(one.find('='), one.size());
    Control control{one.substr(0, equals), {}};
    missing_in(control.name);  // throws for an unknown name
    std::istringstream names(one.substr(std::min(equals + 1, one.size())));
    for (std::string name; std::getline(names, name, '+');) {
      const auto checker = checker_of(name);
      if (!checker) throw std::invalid_argument("no such checker: " + name);
      control.checkers.push_back(*checker);
    }
    if (control.checkers.empty()) {
      throw std::invalid_argument("--control is NAME=CHECKER+CHECKER,...: " + one);
    }
    all.push_back(std::move(control));
  }
  return all;
}

}  // namespace

Arguments parse_arguments(int argc, char** argv) {
  Words said = words_of(argc, argv);
  Arguments arguments;
  arguments.stores = stores_of(said["--store"]);
  arguments.controls = controls_of(said["--control"]);
  auto& plan = arguments.plan;
  namespace fs = std::filesystem;
  const auto here = fs::read_symlink("/proc/self/exe").parent_path();
  plan.worker = (here / "baton_chaos_worker").string();
  // The runtime of a sanitizer must be the first library, so LD_PRELOAD does not work with it.
  if (!test::sanitized()) plan.clock_library = (here / "libbaton_chaos_clock.so").string();
  plan.time = std::chrono::seconds(std::stol(said["--seconds"]));
  plan.calm = std::chrono::seconds(std::stol(said["--calm"]));
  plan.every = std::chrono::milliseconds(std::stol(said["--faults-every"]));
  plan.seed = std::stoull(said["--seed"]);
  plan.clients = std::stoi(said["--clients"]);
  plan.locks = std::stoi(said["--locks"]);
  plan.threads = std::stoi(said["--threads"]);
  plan.directory = said["--directory"];
  std::istringstream only(said["--only"]);
  for (std::string name; std::getline(only, name, ',');) plan.only.insert(name);
  arguments.keep = !plan.directory.empty();
  arguments.report = said["--report"];
  const auto comma = said["--at-least"].find(',');
  if (comma == std::string::npos) throw std::invalid_argument("--at-least is FAULTS,GRANTS");
  arguments.least_faults = std::stoull(said["--at-least"]);
  arguments.least_grants = std::stoull(said["--at-least"].substr(comma + 1));
  arguments.replay = "baton_chaos";
  for (const auto* name : {"--store", "--seconds", "--seed", "--clients", "--locks", "--threads",
                           "--faults-every", "--calm", "--control"}) {
    if (!said[name].empty()) arguments.replay += std::string(" ") + name + " " + said[name];
  }
  if (!said["--only"].empty()) arguments.replay += " --only '" + said["--only"] + "'";
  return arguments;
}

}  // namespace baton::chaos
