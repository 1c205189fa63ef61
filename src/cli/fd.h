// Fd, Pipe, Bell: own descriptors. The ones made here are closed on exec.
#pragma once

#include <initializer_list>
#include <utility>

namespace baton::cli {

class Fd {
 public:
  Fd() noexcept = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { reset(); }

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  void reset() noexcept;

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read;
  Fd write;
};
Pipe make_pipe();  // throws Failure

// Counts wake-ups: an eventfd that never blocks.
class Bell {
 public:
  Bell();                      // throws Failure
  void ring() const noexcept;  // from any thread
  void hush() const noexcept;  // resets the count
  int fd() const noexcept { return fd_.get(); }

 private:
  Fd fd_;
};

// Closes every descriptor of the process from number 3 on, except these.
void close_all_but(std::initializer_list<int> keep);

// Points a standard descriptor at /dev/null.
void redirect_to_null(int fd) noexcept;

}  // namespace baton::cli
