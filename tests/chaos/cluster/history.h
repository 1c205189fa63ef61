// The records of a chaos run on a cluster. Each process appends to its own file, one line a record,
// one write() a line, so that the records of a killed process survive. All times are on
// CLOCK_BOOTTIME, which all processes of one machine share.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::chaos {

enum class Kind {
  // Written by clients. `op` numbers the acquires of one client process, from 1.
  start,     // the process has connected
  asked,     // just before acquire
  granted,   // acquire has returned a lock with `token`. This does not claim that the lock is
             // valid.
  valid,     // `at` was read before valid() returned true: the lock was valid at `at`. until: at +
             // valid_for(), the deadline that the client knows. Written first after the grant, then
             // at least every 20 ms while the lock is held, and last just before release
  invalid,   // valid() returned false; `at` was read after
  lost,      // lost_token() fired; value: the error code of the reason
  revived,   // valid() returned true for a lock that had been lost or not valid before
  release,   // just before release() or the destructor
  released,  // the store has confirmed a release()
  unsure,    // release() threw: the entry may be gone or not; value: error code
  gave_up,   // acquire ended without a lock; value: error code (timeout, cancelled, ...)
  read,      // the holder read `value` from the protected register
  wrote,     // the holder wrote `value` to the protected register; until is zero if the write was
             // refused
  counted,   // resources of the process: value descriptors, token threads, until RSS in bytes
  stop,      // the process has closed its client and ends

  // Written by the driver, with client 0.
  fault,     // a fault begins; text names the fault and its target, op numbers it
  healed,    // the fault `op` has ended
  killed,    // the process `value` was killed; `at` was read after it was reaped
  paused,    // the process `value` was stopped; `at` was read after it had stopped
  resumed,   // the process `value` continues; `at` was read before. With an op: the fault `op` is
             // being undone
  present,   // the entry with `token` was in the store; `at` was read before the request was sent
  gone,      // the entry was not there any more; `at` was read after the answer. Only for entries
             // seen present
  evicted,   // an operator removes the entry with `token` or ends its session; `at` was read before
  foreign,   // the entry with `token` was created by another library, not by a client
  calm,      // no faults from here on: all clients must continue
  stray,     // the server `value` has noticed that it has lost committed data; until: the earliest
             // possible time of the loss
  mended,    // the server `value` has received that data again
  expired,   // the fault `op` stopped the leader. After it continued, it does not lead any more,
             // and its own counter shows that it has ended `value` leases since it was stopped
  leftover,  // after all clients were closed: text names what is still in the store
};

struct Record {
  std::chrono::nanoseconds at{};
  std::uint32_t client = 0;  // unique number of a client process; 0: the driver
  Kind kind = Kind::start;
  std::uint64_t op = 0;
  std::uint32_t lock = 0;  // from 0
  std::uint64_t token = 0;
  std::chrono::nanoseconds until{};
  std::uint64_t value = 0;
  std::string text;  // the rest of the line; usually empty
};

std::string_view name_of(Kind kind);

// Returns "AT CLIENT KIND OP LOCK TOKEN UNTIL VALUE TEXT\n", with times in nanoseconds. If the text
// is empty, there is no space after VALUE. Line breaks in the text become spaces.
std::string to_line(const Record& record);
// Reads a line with its "\n". Returns nullopt if the line is not a complete record. Only the last
// line of a killed process may be incomplete.
std::optional<Record> from_line(std::string_view line);

// Appends to a file. Thread-safe. Throws std::runtime_error if the file cannot be written.
class HistoryWriter {
 public:
  HistoryWriter(const std::string& path, std::uint32_t client);
  ~HistoryWriter();
  HistoryWriter(const HistoryWriter&) = delete;
  HistoryWriter& operator=(const HistoryWriter&) = delete;
  void write(Record record) const;  // sets the client

 private:
  int fd_;
  std::uint32_t client_;
};

// A line that is not a record.
struct Damage {
  std::string file;          // file name without the directory
  std::size_t line = 0;      // from 1
  std::uint32_t client = 0;  // the client of the file's other records; 0: the driver, or not known
  bool cut_off = false;      // the last line, without its "\n"
};

// Returns all records of all "*.history" files in a directory, sorted by time. Records of one file
// with the same time stay in their order. Lines that are not records are left out and returned in
// `damage`. Throws std::runtime_error if a file cannot be read.
std::vector<Record> read_histories(const std::string& directory,
                                   std::vector<Damage>* damage = nullptr);

}  // namespace baton::chaos
