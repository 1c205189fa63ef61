#include "support/zk_ask.h"

#include "support/boot_clock.h"
#include "support/dial.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <utility>

namespace baton::test {
namespace {

constexpr const char* kNotServing = "This ZooKeeper instance is not currently serving requests";

// Reads messages of the client protocol.
class Messages {
 public:
  explicit Messages(Dial& dial) : dial_(dial) {}

  // The next message, without its length.
  std::optional<std::string> next() {
    for (;;) {
      if (buffer_.size() >= 4) {
        std::size_t size = 0;
        for (int i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(buffer_[i]);
        if (buffer_.size() - 4 >= size) {
          std::string body = buffer_.substr(4, size);
          buffer_.erase(0, 4 + size);
          return body;
        }
      }
      const auto more = dial_.some();
      if (!more || more->empty()) return std::nullopt;
      buffer_ += *more;
    }
  }

 private:
  Dial& dial_;
  std::string buffer_;
};

template <class Integer>
void put(std::string& out, Integer value) {
  for (int shift = 8 * sizeof value - 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> shift & 0xff));
  }
}

std::string with_length(const std::string& body) {
  std::string all;
  put(all, static_cast<std::int32_t>(body.size()));
  return all + body;
}

// java.util.Random seeded with the id and a constant, as ZooKeeperServer.generatePasswd() does.
std::string password_of(std::int64_t session) {
  constexpr std::uint64_t kFactor = 0x5DEECE66DULL;
  constexpr std::uint64_t kMask = (1ULL << 48) - 1;
  std::uint64_t seed = (static_cast<std::uint64_t>(session) ^ 0xB3415C00ULL ^ kFactor) & kMask;
  std::string bytes;
  while (bytes.size() < 16) {
    seed = (seed * kFactor + 0xB) & kMask;
    for (int shift = 16; shift < 48; shift += 8) {
      bytes.push_back(static_cast<char>(seed >> shift & 0xff));
    }
  }
  return bytes;
}

std::int64_t session_at(const std::string& text, std::size_t at) {
  return static_cast<std::int64_t>(std::strtoull(text.c_str() + at, nullptr, 16));
}

// The value of "name=" in a line of `cons`.
std::string field(const std::string& line, const std::string& name) {
  for (const char before : {'(', ','}) {
    const std::string key = before + name + "=";
    const auto at = line.find(key);
    if (at == line.npos) continue;
    const auto begin = at + key.size();
    return line.substr(begin, line.find_first_of(",)", begin) - begin);
  }
  return {};
}

}  // namespace

std::string four_letter(const std::string& server, const std::string& word,
                        std::chrono::milliseconds limit) {
  Dial dial(server, limit);
  std::string answer;
  if (!dial.send(word)) return {};
  for (;;) {
    const auto more = dial.some();
    if (!more) return {};
    if (more->empty()) return answer;
    answer += *more;
    // A 3.8 server that does not serve yet gives this answer, and sometimes fails to close the
    // connection (a null pointer in its close).
    if (answer.find(kNotServing) != answer.npos) return answer;
  }
}

std::map<std::string, std::string> parse_mntr(const std::string& text) {
  std::map<std::string, std::string> table;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto tab = line.find('\t');
    if (tab != line.npos) table[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return table;
}

ZkDump parse_dump(const std::string& text) {
  enum class Part { kBefore, kSessions, kEphemerals, kAfter } part = Part::kBefore;
  ZkDump dump;
  std::int64_t owner = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("SessionTracker dump")) {
      part = Part::kSessions;
    } else if (line.starts_with("ephemeral nodes dump")) {
      part = Part::kEphemerals;
    } else if (line.starts_with("Connections dump")) {
      part = Part::kAfter;
    } else if (const auto at = line.find_first_not_of(" \t"); at == line.npos) {
      continue;
    } else if (part == Part::kSessions && line.compare(at, 2, "0x") == 0) {
      dump.sessions.insert(session_at(line, at));
    } else if (part == Part::kEphemerals && line.compare(at, 2, "0x") == 0) {
      owner = session_at(line, at);
      dump.ephemerals[owner];
    } else if (part == Part::kEphemerals && line[at] == '/') {
      dump.ephemerals[owner].insert(line.substr(at));
    }
  }
  return dump;
}

std::map<std::string, std::set<std::int64_t>> parse_wchp(const std::string& text) {
  std::map<std::string, std::set<std::int64_t>> watches;
  std::string path;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('/')) {
      path = line;
    } else if (line.starts_with("\t0x")) {
      watches[path].insert(session_at(line, 1));
    }
  }
  return watches;
}

std::vector<ZkConnection> parse_cons(const std::string& text) {
  std::vector<ZkConnection> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto slash = line.find('/');
    const auto bracket = line.find('[');
    if (slash == line.npos || bracket == line.npos || bracket < slash) continue;
    ZkConnection c;
    c.peer = line.substr(slash + 1, bracket - slash - 1);
    const std::string session = field(line, "sid");
    if (!session.empty()) c.session = session_at(session, 0);
    c.received = std::strtoull(field(line, "recved").c_str(), nullptr, 10);
    c.sent = std::strtoull(field(line, "sent").c_str(), nullptr, 10);
    c.last_operation = field(line, "lop");
    all.push_back(std::move(c));
  }
  return all;
}

bool end_session(const std::string& server, std::int64_t session, std::chrono::milliseconds limit) {
  std::string connect;
  put(connect, std::int32_t{0});       // protocol
  put(connect, std::int64_t{0});       // last zxid seen
  put(connect, std::int32_t{10'000});  // timeout
  put(connect, session);
  put(connect, std::int32_t{16});
  connect += password_of(session);
  connect.push_back(0);  // not read-only
  std::string close;
  put(close, std::int32_t{1});    // xid
  put(close, std::int32_t{-11});  // close session
  // Sends both messages together, and repeats this. A client at the same server takes its session
  // back when it can, and a connection to a session that is ending may get no answer.
  const std::string both = with_length(connect) + with_length(close);
  for (const Stopwatch watch; watch.elapsed() < limit;) {
    Dial dial(server, std::min(limit, std::chrono::milliseconds(1000)));
    if (!dial.send(both)) continue;
    Messages messages(dial);
    const auto accepted = messages.next();
    if (!accepted || accepted->size() < 16) continue;
    const auto id = accepted->substr(8, 8);
    if (std::all_of(id.begin(), id.end(), [](char c) { return c == 0; })) return true;
    if (messages.next()) return true;
  }
  return false;
}

std::string session_text(std::int64_t session) {
  std::ostringstream out;
  out << "0x" << std::hex << static_cast<std::uint64_t>(session);
  return out.str();
}

}  // namespace baton::test
