// A TCP connection for requests with a time limit.
#pragma once

#include "support/boot_clock.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace baton::test {

// The limit is for all calls together, from the construction on. After the limit all calls fail.
class Dial {
 public:
  Dial(const std::string& server, std::chrono::milliseconds limit);  // "127.0.0.1:2181"
  ~Dial();
  Dial(const Dial&) = delete;
  Dial& operator=(const Dial&) = delete;

  bool send(std::string_view bytes);
  // Some received bytes. nullopt: the connection failed or the limit is over. Empty: the peer has
  // closed the connection.
  std::optional<std::string> some();

 private:
  bool wait(short events) const;

  const Stopwatch watch_;
  const std::chrono::milliseconds limit_;
  int fd_ = -1;
  bool alive_ = false;
};

}  // namespace baton::test
