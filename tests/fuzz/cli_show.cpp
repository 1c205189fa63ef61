// Fuzzes how the command line shows a lock on a terminal and as JSON: any text from a store is
// shown without control characters, and valid text is shown unchanged.
#include "errors.h"
#include "fuzz.h"
#include "json.h"
#include "text.h"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace baton::cli {
namespace {

using std::chrono::system_clock;

bool is_utf8(std::string_view text) {
  // Asks the JSON library, so that the test does not depend on a check of its own.
  try {
    const auto dumped = Json(std::string(text)).dump();
    return !dumped.empty();
  } catch (const Json::exception&) {
    return false;
  }
}

// Whether the text has no control characters for a terminal (C0, DEL, or C1 as UTF-8) and is valid
// UTF-8.
bool harmless(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7f) return false;
    if (byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) {
      return false;
    }
  }
  return is_utf8(text);
}

bool is_rfc3339(std::string_view text) {
  static constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd.dddZ";
  if (text.size() != kShape.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kShape[i] == 'd' ? !digit : text[i] != kShape[i]) return false;
  }
  return true;
}

void check_snapshot(const LockSnapshot& snapshot) {
  const std::string dumped = dump(to_json(snapshot));
  FUZZ_REQUIRE(dumped.find('\n') == dumped.npos && is_utf8(dumped));
  const auto back = Json::parse(dumped);
  FUZZ_REQUIRE(back["entries"].size() == snapshot.entries.size());
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < snapshot.entries.size(); ++i) {
    const auto& entry = snapshot.entries[i];
    const auto& item = back["entries"][i];
    if (is_utf8(entry.label)) FUZZ_REQUIRE(item["label"] == entry.label);
    if (is_utf8(entry.id)) FUZZ_REQUIRE(item["id"] == entry.id);
    FUZZ_REQUIRE(item["token"] == entry.token);
    FUZZ_REQUIRE(item["since"].is_null() || is_rfc3339(item["since"].get<std::string>()), dumped);
    rows.push_back(
        {escape_controls(entry.label), std::to_string(entry.token),
         format_since(entry.since, system_clock::time_point(std::chrono::hours(500'000))),
         escape_controls(entry.id)});
    for (const auto& cell : rows.back()) FUZZ_REQUIRE(harmless(cell), cell);
    // Harmless text is not changed.
    if (harmless(entry.label)) FUZZ_REQUIRE(escape_controls(entry.label) == entry.label);
  }
  const auto table = format_table(rows);
  FUZZ_REQUIRE(static_cast<std::size_t>(std::count(table.begin(), table.end(), '\n')) ==
               rows.size());
}

}  // namespace
}  // namespace baton::cli

FUZZ_TARGET(cli_show) {
  using namespace baton;
  fuzz::Input in(input);
  LockSnapshot snapshot;
  snapshot.name = "a";
  while (!in.empty() && snapshot.entries.size() < 16) {
    Entry entry;
    entry.label = in.text();
    entry.id = in.text();
    entry.token = in.edge();
    entry.since = std::chrono::system_clock::time_point(
        std::chrono::system_clock::duration(static_cast<std::int64_t>(in.edge())));
    snapshot.entries.push_back(std::move(entry));
  }
  cli::check_snapshot(snapshot);
}
