// What happened in a run of chaos on a cluster, as those who took part wrote it down. Each process
// appends to a file of its own, one line a record, one write() a line: what a killed process wrote
// before stays. All times are on CLOCK_BOOTTIME, which the processes of one machine share.
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
  // Written by clients. op numbers the acquires of one client process, from 1.
  start,     // the process has connected
  asked,     // just before acquire
  granted,   // acquire has returned a lock: token. No claim yet that it is valid.
  valid,     // `at` was read before valid() said true: the lock was valid at `at`. until: at +
             // valid_for(), the deadline as the client knows it. Written at the first moment and
             // again while the lock is held, at least every 20 ms, and as the last thing before
             // release
  invalid,   // valid() said false; `at` was read after
  lost,      // lost_token() fired; value: the error code of the reason
  revived,   // state() or valid() told of a held lock again after it had been lost
  release,   // just before release() or the destructor
  released,  // confirmed by the store; only after a confirmed release()
  unsure,    // release() threw: whether the entry is gone is open; value: error code
  gave_up,   // acquire ended without a lock; value: error code (timeout, cancelled, ...)
  read,      // under the lock, from the protected register: value
  wrote,     // to the protected register: value; until is zero if it was refused
  counted,   // the process's own use: value descriptors, token threads, until RSS in bytes
  stop,      // the process ends by itself, its client closed

  // Written by the driver. client 0.
  fault,     // a fault begins: text names it and its target, op numbers it
  healed,    // the fault `op` is over
  killed,    // the process `value` was killed; `at` after it was reaped
  paused,    // the process `value` was stopped; `at` after it was
  resumed,   // and went on; `at` before it did. With an op: what the fault `op` had stopped does
  present,   // the entry with `token` was in the store: `at` before the reading was asked for
  gone,      // and was not any more: `at` after the answer had come. Only for entries seen present.
  evicted,   // an operator took the entry with `token` out, or its session; `at` before it was done
  foreign,   // the entry with `token` is none of a client's: another library's way of queueing
  calm,      // from here on no faults: everybody must go on
  stray,     // the server `value` has noticed that it has not what was committed, since `until`
  mended,    // and was given it
  expired,   // the fault `op` stopped the leader; it went on, does not lead, and has ended `value`
             // leases since it was stopped, as it counts them itself
  leftover,  // after all clients were closed: text names what is still in the store
};

struct Record {
  std::chrono::nanoseconds at{};
  std::uint32_t client = 0;  // a number for each process that ever ran, never used again; 0: driver
  Kind kind = Kind::start;
  std::uint64_t op = 0;
  std::uint32_t lock = 0;  // from 0
  std::uint64_t token = 0;
  std::chrono::nanoseconds until{};
  std::uint64_t value = 0;
  std::string text;  // the rest of the line; empty for most
};

std::string_view name_of(Kind kind);

// "AT CLIENT KIND OP LOCK TOKEN UNTIL VALUE TEXT\n", times in nanoseconds. No space after VALUE if
// the text is empty; line breaks in the text become spaces.
std::string to_line(const Record& record);
// With its "\n": a line without one was cut off. nullopt: not a record, all of it. The last line of
// a killed process may be cut off; others may not.
std::optional<Record> from_line(std::string_view line);

// Appends to a file. Thread-safe. Throws std::runtime_error if the file cannot be written.
class HistoryWriter {
 public:
  HistoryWriter(const std::string& path, std::uint32_t client);
  ~HistoryWriter();
  HistoryWriter(const HistoryWriter&) = delete;
  HistoryWriter& operator=(const HistoryWriter&) = delete;
  void write(Record record) const;  // client is filled in

 private:
  int fd_;
  std::uint32_t client_;
};

// A line that is no record.
struct Damage {
  std::string file;          // its name, without the directory
  std::size_t line = 0;      // from 1
  std::uint32_t client = 0;  // whose records the file holds otherwise; 0: the driver's, or nobody's
  bool cut_off = false;      // the last line, without its end
};

// All records of all "*.history" files in a directory, sorted by time; those of one file with the
// same time stay in the order of the file. Lines that are no records are left out and told of.
// Throws std::runtime_error if a file cannot be read.
std::vector<Record> read_histories(const std::string& directory,
                                   std::vector<Damage>* damage = nullptr);

}  // namespace baton::chaos
