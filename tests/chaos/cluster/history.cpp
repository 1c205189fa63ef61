#include "chaos/cluster/history.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace baton::chaos {
namespace {

// In the order of Kind.
constexpr std::array<std::string_view, 29> kNames{
    "start",    "asked",  "granted", "valid",   "invalid", "lost",    "revived", "release",
    "released", "unsure", "gave_up", "read",    "wrote",   "counted", "stop",    "fault",
    "healed",   "killed", "paused",  "resumed", "present", "gone",    "evicted", "foreign",
    "calm",     "stray",  "mended",  "expired", "leftover"};
static_assert(kNames.size() == static_cast<std::size_t>(Kind::leftover) + 1);

std::optional<Kind> kind_of(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Kind>(found - kNames.begin());
}

// Takes fields off the front of a line, one space apart.
class Fields {
 public:
  explicit Fields(std::string_view line) : rest_(line) {}

  std::string_view word() {
    const auto space = rest_.find(' ');
    const auto taken = rest_.substr(0, space);
    rest_ = space == std::string_view::npos ? std::string_view{} : rest_.substr(space + 1);
    return taken;
  }

  template <class Number>
  Number number() {
    const auto taken = word();
    Number value{};
    const auto [end, error] = std::from_chars(taken.data(), taken.data() + taken.size(), value);
    if (error != std::errc{} || end != taken.data() + taken.size()) good_ = false;
    return value;
  }

  bool good() const { return good_; }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  bool good_ = true;
};

void read_file(const std::filesystem::path& path, std::vector<Record>& records,
               std::vector<Damage>* damage) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  std::vector<Damage> found;
  std::uint32_t client = 0;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    const bool cut_off = in.eof();  // the file ended before the line did
    if (!cut_off) line += '\n';
    if (auto record = from_line(line)) {
      client = record->client;
      records.push_back(std::move(*record));
    } else {
      found.push_back({path.filename().string(), number, 0, cut_off});
    }
  }
  if (damage == nullptr) return;
  for (Damage& each : found) {
    each.client = client;
    damage->push_back(std::move(each));
  }
}

}  // namespace

std::string_view name_of(Kind kind) { return kNames.at(static_cast<std::size_t>(kind)); }

std::string to_line(const Record& record) {
  std::string line;
  const auto add = [&line](const auto& value) { (line += std::to_string(value)) += ' '; };
  add(record.at.count());
  add(record.client);
  (line += name_of(record.kind)) += ' ';
  add(record.op);
  add(record.lock);
  add(record.token);
  add(record.until.count());
  line += std::to_string(record.value);
  if (!record.text.empty()) {
    line += ' ';
    const auto from = line.size();
    line += record.text;
    std::replace(line.begin() + static_cast<std::ptrdiff_t>(from), line.end(), '\n', ' ');
  }
  line += '\n';
  return line;
}

std::optional<Record> from_line(std::string_view line) {
  if (line.empty() || line.back() != '\n') return std::nullopt;
  line.remove_suffix(1);
  Fields fields(line);
  Record record;
  record.at = std::chrono::nanoseconds(fields.number<std::int64_t>());
  record.client = fields.number<std::uint32_t>();
  const auto kind = kind_of(fields.word());
  if (!kind) return std::nullopt;
  record.kind = *kind;
  record.op = fields.number<std::uint64_t>();
  record.lock = fields.number<std::uint32_t>();
  record.token = fields.number<std::uint64_t>();
  record.until = std::chrono::nanoseconds(fields.number<std::int64_t>());
  record.value = fields.number<std::uint64_t>();
  if (!fields.good()) return std::nullopt;
  record.text = fields.rest();
  return record;
}

HistoryWriter::HistoryWriter(const std::string& path, std::uint32_t client)
    : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)), client_(client) {
  if (fd_ < 0) {
    throw std::runtime_error("cannot open " + path + ": " + std::generic_category().message(errno));
  }
}

HistoryWriter::~HistoryWriter() { ::close(fd_); }

// One write() for a line: with O_APPEND the kernel keeps the lines of several threads apart, and no
// buffer is lost with the process. A short write happens only when the disk is full or the process
// is being killed. Writing the rest later could split the line of another thread.
void HistoryWriter::write(Record record) const {
  record.client = client_;
  const std::string line = to_line(record);
  ssize_t written = 0;
  do {
    written = ::write(fd_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written != static_cast<ssize_t>(line.size())) {
    throw std::runtime_error("cannot write a history: " +
                             std::generic_category().message(written < 0 ? errno : ENOSPC));
  }
}

std::vector<Record> read_histories(const std::string& directory, std::vector<Damage>* damage) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".history") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());  // a directory has no defined order
  std::vector<Record> records;
  for (const auto& file : files) read_file(file, records, damage);
  std::stable_sort(records.begin(), records.end(),
                   [](const Record& a, const Record& b) { return a.at < b.at; });
  return records;
}

}  // namespace baton::chaos
