#include "interop/contender.h"

#include <time.h>

#include <cstdlib>
#include <iterator>
#include <sstream>

namespace baton::interop {
namespace {

const char* program_of(Library library) {
  switch (library) {
    case Library::baton:
      return BATON_CONTENDER;
    case Library::curator:
      return BATON_INTEROP_JAVA;
    case Library::kazoo:
      return BATON_INTEROP_PYTHON;
    case Library::go:
    case Library::v3lock:
    case Library::etcdctl:
      return BATON_INTEROP_ETCD;
  }
  return "";
}

std::vector<std::string> arguments_of(Library library, const std::string& who, const Place& place) {
  const std::string session = std::to_string(place.session.count());
  // Without a root, keys on etcd begin with the name. Nodes on ZooKeeper always begin with a slash.
  const bool bare = place.store == Store::etcd && place.root.empty();
  const std::string path = bare ? place.name : place.root + "/" + place.name;
  switch (library) {
    case Library::baton: {
      const std::string scheme = place.store == Store::zk ? "zk://" : "etcd://";
      std::vector<std::string> words{who, scheme + place.hosts + place.root, place.name, session};
      if (place.persistent_parents) words.emplace_back("--persistent-parents");
      return words;
    }
    case Library::curator:
      // A small JVM that starts quickly, because several of them run at the same time.
      return {"-Xmx64m",
              "-XX:+UseSerialGC",
              "-XX:TieredStopAtLevel=1",
              "-cp",
              BATON_INTEROP_CLASSPATH,
              "CuratorContender",
              who,
              place.hosts,
              path,
              session};
    case Library::kazoo:
      return {BATON_INTEROP_KAZOO, who, place.hosts, path, session};
    case Library::go:
      return {who, place.hosts, path, session, "mutex"};
    case Library::v3lock:
      return {who, place.hosts, path, session, "v3lock"};
    case Library::etcdctl:
      return {who, place.hosts, path, session, "etcdctl", BATON_INTEROP_ETCDCTL};
  }
  return {};
}

}  // namespace

std::string_view name_of(Library library) {
  switch (library) {
    case Library::baton:
      return "Baton";
    case Library::curator:
      return "Curator";
    case Library::kazoo:
      return "Kazoo";
    case Library::go:
      return "Go";
    case Library::v3lock:
      return "V3lock";
    case Library::etcdctl:
      return "Etcdctl";
  }
  return "?";
}

std::string_view missing_peers(Store store) {
  return store == Store::zk ? BATON_INTEROP_ZK_MISSING : BATON_INTEROP_ETCD_MISSING;
}

std::int64_t monotonic_now() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

Contender::Contender(Library library, const std::string& who, const Place& place)
    : who_(who), process_(program_of(library), arguments_of(library, who, place)) {}

void Contender::say(const std::string& command) { process_.say(command); }

std::vector<std::string> Contender::answer(std::chrono::milliseconds limit) {
  words_.clear();
  if (const auto text = process_.line(limit)) {
    std::istringstream in(*text);
    words_.assign(std::istream_iterator<std::string>(in), {});
  }
  return words_;
}

std::string Contender::ask(const std::string& command) {
  say(command);
  const auto words = answer();
  return words.empty() ? "nothing" : words[0];
}

std::int64_t Contender::stamp() const {
  return words_.size() < 2 ? 0 : std::strtoll(words_[1].c_str(), nullptr, 10);
}

std::uint64_t Contender::token() const {
  return words_.size() < 3 ? 0 : std::strtoull(words_[2].c_str(), nullptr, 10);
}

bool Contender::silent() const { return process_.silent(); }
void Contender::kill_hard() { process_.kill_hard(); }

std::optional<int> Contender::quit(std::chrono::milliseconds limit) {
  say("quit");
  return process_.exit_code(limit);
}

}  // namespace baton::interop
