// Link: carries the messages between baton and its guardian, over a socket pair.
#pragma once

#include <cstdint>

#include "fd.h"

namespace baton::cli {

enum class Note : std::int32_t {
  // baton to guardian
  start,     // value: token, number: grace in ms; may carry the liveness descriptor
  go,        // let CMD run
  deadline,  // value: the lock's deadline, CLOCK_BOOTTIME in ns
  end,       // the lock is lost: end the group now
  bye,       // exit without touching the group
  // guardian to baton
  started,  // number: the process group of CMD, which waits for go
  failed,   // CMD could not be forked; the guardian has printed why, and exits
  stopped,  // number: the signal that stopped CMD
  exited,   // number: exit code, value: errno of exec
  killed,   // number: the signal that ended CMD
  ending,   // the deadline is near, or the lock is lost: the group got TERM
  gone,     // the group was ended, and no process in it lives
};

struct Message {
  Note note{};
  std::int32_t number = 0;
  std::int64_t value = 0;
};

// One end of the socket pair. When the other process has ended, receive() returns `closed`, after
// the last messages of that process.
class Link {
 public:
  enum class Got { message, nothing, closed };

  explicit Link(Fd fd) noexcept : fd_(std::move(fd)) {}
  int fd() const noexcept { return fd_.get(); }

  // Never blocks. False: the other process has ended, or does not read (it is stopped).
  bool send(const Message& message, int descriptor = -1) noexcept;
  Got receive(Message& message, Fd* descriptor = nullptr) noexcept;

 private:
  Fd fd_;
};

struct LinkPair {
  Link baton;
  Link guardian;
};
LinkPair make_links();  // throws Failure

}  // namespace baton::cli
