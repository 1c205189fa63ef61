#include "conformance/rig.h"

#include "support/eventually.h"
#include "support/sanitized.h"

#include <stdexcept>

namespace baton::conformance {
namespace {

// ThreadSanitizer does not support fork() in a process with several threads.
constexpr bool kFork = !test::kThreadSanitizer;

// clang-format off
constexpr RigTraits kTable[] = {
    // rig              processes  fork   end_sessions  cut    lose_answers
    {"memory",          false,     kFork, false,        false, false},
    {"virtual_memory",  false,     false, true,         true,  true},
    {"file",            true,      kFork, false,        false, false},
    {"zk",              true,      kFork, true,         true,  true},
    {"zk3",             true,      kFork, true,         true,  true},
    {"etcd",            true,      kFork, true,         true,  true},
    {"etcd3",           true,      kFork, true,         true,  true},
};
// clang-format on

}  // namespace

const RigTraits& traits_of(std::string_view rig) {
  for (const auto& row : kTable) {
    if (row.rig == rig) return row;
  }
  throw std::logic_error("no row for rig " + std::string(rig) + " in the table of rig.cpp");
}

bool can(std::string_view rig, Can what) {
  const auto& row = traits_of(rig);
  switch (what) {
    case Can::cross_processes:
      return row.cross_processes;
    case Can::fork:
      return row.fork;
    case Can::end_sessions:
      return row.end_sessions;
    case Can::cut:
      return row.cut;
    case Can::lose_answers:
      return row.lose_answers;
  }
  return false;
}

std::string_view to_text(Can what) {
  switch (what) {
    case Can::cross_processes:
      return "cross processes";
    case Can::fork:
      return "fork";
    case Can::end_sessions:
      return "end sessions";
    case Can::cut:
      return "cut clients off";
    case Can::lose_answers:
      return "lose answers";
  }
  return "?";
}

Client Rig::open(ClientOptions options) { return Client::connect(url(), std::move(options)); }

Client& Rig::observer() {
  if (!observer_) {
    ClientOptions options;
    options.label = "observer";
    options.connect_timeout = std::chrono::seconds(20);
    observer_.emplace(Client::connect(observer_url(), std::move(options)));
  }
  return *observer_;
}

std::size_t Rig::entries(std::string_view name) { return observer().inspect(name).entries.size(); }
std::size_t Rig::locks() { return observer().list().size(); }
bool Rig::remove_entry(std::string_view name, std::string_view entry_id) {
  return observer().evict(name, entry_id);
}
std::chrono::nanoseconds Rig::now() const { return test::boot_now(); }
void Rig::tick() { test::poll_pause(); }

void Rig::end_sessions() { throw std::logic_error("this rig cannot end sessions"); }
void Rig::cut() { throw std::logic_error("this rig cannot cut clients off"); }
void Rig::heal() { throw std::logic_error("this rig cannot heal"); }
void Rig::lose_next_answer() { throw std::logic_error("this rig cannot lose answers"); }
void Rig::delay_next_answer(std::chrono::milliseconds) {
  throw std::logic_error("this rig cannot delay answers");
}

}  // namespace baton::conformance
