// Outbox: requests waiting for the line, first come first sent. Keeps them while there is no
// connection (what was never sent is not in doubt) and bounds what is under way.
#pragma once

#include "zk/transport.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

namespace baton::zk {

class Outbox {
 public:
  // The C client gives up its socket when more than 64 Ki requests wait for its I/O thread, and the
  // server slows down at 1,000.
  static constexpr std::size_t kUnderWay = 1024;

  Outbox();
  ~Outbox();  // what waits, or is under way, is never answered
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  void attach(Transport* transport) noexcept { transport_ = transport; }

  // The answer's second argument: the connection it was sent on.
  using Answer = UniqueFunction<void(Reply&, std::uint64_t connection)>;
  // wanted: asked right before it is sent; if it says no, it is not sent and not answered.
  using Wanted = UniqueFunction<bool()>;
  std::uint64_t ask(Request request, Answer answer, Wanted wanted = nullptr);
  // True: it was not sent, and will not be, and is not answered.
  bool recall(std::uint64_t id);

  void connected();
  void disconnected() noexcept { open_ = false; }
  bool open() const noexcept { return open_; }
  // Counts connections; 0: there was none yet.
  std::uint64_t connection() const noexcept { return connection_; }

 private:
  struct Waiting {
    std::uint64_t id;
    Request request;
    Answer answer;
    Wanted wanted;
  };
  void flush();

  Transport* transport_ = nullptr;
  bool open_ = false;
  std::uint64_t connection_ = 0;
  std::uint64_t next_ = 1;
  std::size_t under_way_ = 0;
  std::deque<Waiting> waiting_;
  std::shared_ptr<bool> alive_;
};

}  // namespace baton::zk
