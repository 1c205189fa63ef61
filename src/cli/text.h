// Formats and parses text for people: durations, times, tables, and labels without control
// characters.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::cli {

// "30s", "500ms", "2m", "1h", "1.5s"; a number without a unit is seconds. None: not a duration, or
// more than ten years. Rounded to whole milliseconds, but a positive value never becomes 0.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

// "250ms", "12s", "3m12s", "2h05m", "4d03h".
std::string format_duration(std::chrono::milliseconds d);
// For round trips: "85 µs", "1.4 ms", "2.5 s".
std::string format_round_trip(std::chrono::nanoseconds d);

// "2026-01-02 03:04:05" in the local time zone.
std::string format_local(std::chrono::system_clock::time_point t);
// "2026-01-02T03:04:05.678Z" (RFC 3339).
std::string format_utc(std::chrono::system_clock::time_point t);
// Local time and age, or "unknown" for the epoch.
std::string format_since(std::chrono::system_clock::time_point since,
                         std::chrono::system_clock::time_point now);

// Control characters (C0, DEL, C1) and bytes that are not UTF-8 become \xNN.
std::string escape_controls(std::string_view text);

// Columns aligned on their widest cell, two spaces between, no blanks at line ends.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

// SIGTERM -> "SIGTERM"; "signal 42" for those without a name.
std::string signal_name(int signal);

}  // namespace baton::cli
