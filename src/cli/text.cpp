#include "text.h"

#include <string.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>

namespace baton::cli {

namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

// Length of the UTF-8 sequence at the front of text; 0: not UTF-8.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t length = 0;
  if (byte(0) < 0x80) return 1;
  if (byte(0) >= 0xc2 && byte(0) <= 0xdf) length = 2;
  if (byte(0) >= 0xe0 && byte(0) <= 0xef) length = 3;
  if (byte(0) >= 0xf0 && byte(0) <= 0xf4) length = 4;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xf0 && byte(1) < 0x90);
  const bool surrogate = byte(0) == 0xed && byte(1) > 0x9f;
  const bool beyond = byte(0) == 0xf4 && byte(1) > 0x8f;
  return overlong || surrogate || beyond ? 0 : length;
}

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

template <class... Args>
std::string printed(const char* format, Args... args) {
  char buffer[128];
  const int n = std::snprintf(buffer, sizeof buffer, format, args...);
  return {buffer, static_cast<std::size_t>(std::clamp<int>(n, 0, sizeof buffer - 1))};
}

// Clamped so that calculations with system_clock do not overflow: a store may contain any number.
system_clock::time_point within_reach(system_clock::time_point t) {
  constexpr std::chrono::hours kFar{24 * 365 * 250};
  return std::clamp(t, system_clock::time_point(-kFar), system_clock::time_point(kFar));
}

std::string format_time(const std::tm& parts, const char* format) {
  char buffer[64];
  return {buffer, std::strftime(buffer, sizeof buffer, format, &parts)};
}

}  // namespace

std::optional<milliseconds> parse_duration(std::string_view text) {
  std::size_t i = 0;
  std::size_t digits = 0;
  long double number = 0;
  long double unit = 1;
  for (bool fraction = false; i < text.size(); ++i) {
    if (text[i] == '.' && !fraction && digits > 0) {
      fraction = true;
      digits = 0;
      continue;
    }
    if (text[i] < '0' || text[i] > '9') break;
    ++digits;
    if (fraction) unit /= 10;
    number = fraction ? number + unit * (text[i] - '0') : number * 10 + (text[i] - '0');
  }
  if (digits == 0) return std::nullopt;  // "", "s", ".5s", "5.s"
  const std::string_view suffix = text.substr(i);
  long double factor = 0;
  if (suffix == "ms") factor = 1;
  if (suffix == "s" || suffix.empty()) factor = 1000;
  if (suffix == "m") factor = 60'000;
  if (suffix == "h") factor = 3'600'000;
  const long double result = number * factor;
  if (factor == 0 || result > 3650.0L * 86'400'000) return std::nullopt;
  const auto rounded = static_cast<std::int64_t>(std::llround(result));
  return milliseconds(number > 0 ? std::max<std::int64_t>(rounded, 1) : 0);
}

std::string format_duration(milliseconds d) {
  const long long ms = std::max<long long>(d.count(), 0);
  const long long s = ms / 1000;
  if (ms < 1000) return printed("%lldms", ms);
  if (s < 60 && ms % 1000 != 0 && s < 10) return printed("%.1fs", static_cast<double>(ms) / 1000);
  if (s < 60) return printed("%llds", s);
  if (s < 3600) return printed("%lldm%02llds", s / 60, s % 60);
  if (s < 86'400) return printed("%lldh%02lldm", s / 3600, s / 60 % 60);
  return printed("%lldd%02lldh", s / 86'400, s / 3600 % 24);
}

std::string format_round_trip(std::chrono::nanoseconds d) {
  const double ns = static_cast<double>(d.count());
  if (ns < 1e6) return printed("%.0f µs", ns / 1e3);
  if (ns < 1e9) return printed("%.1f ms", ns / 1e6);
  return printed("%.1f s", ns / 1e9);
}

std::string format_local(system_clock::time_point t) {
  const std::time_t seconds = system_clock::to_time_t(t);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  return format_time(parts, "%Y-%m-%d %H:%M:%S");
}

std::string format_utc(system_clock::time_point t) {
  t = within_reach(t);
  const auto whole = std::chrono::floor<std::chrono::seconds>(t);
  const std::time_t seconds = system_clock::to_time_t(whole);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  const auto ms = std::chrono::floor<milliseconds>(t - whole).count();
  return format_time(parts, "%Y-%m-%dT%H:%M:%S") + printed(".%03dZ", static_cast<int>(ms));
}

std::string format_since(system_clock::time_point since, system_clock::time_point now) {
  if (since == system_clock::time_point{}) return "unknown";
  since = within_reach(since);
  // In seconds, because three centuries do not fit into 64 bits of nanoseconds.
  const auto age = std::chrono::floor<std::chrono::seconds>(now) -
                   std::chrono::floor<std::chrono::seconds>(since);
  return format_local(since) + " (" +
         (age.count() <= 0 ? std::string("now") : format_duration(age) + " ago") + ")";
}

std::string escape_controls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::size_t n = utf8_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    const bool c0 = n == 1 && (first < 0x20 || first == 0x7f);
    const bool c1 = n == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    if (n == 0 || c0 || c1) {
      n = std::max<std::size_t>(n, 1);
      for (const char c : text.substr(0, n))
        out += printed("\\x%02x", static_cast<unsigned char>(c));
    } else {
      out += text.substr(0, n);
    }
    text.remove_prefix(n);
  }
  return out;
}

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i] + std::string(widths[i] - width(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : printed("signal %d", signal);
}

}  // namespace baton::cli
