// Outbox: queues requests for the transport and sends them in order. Keeps requests while there is
// no connection (a request that was never sent is not in doubt), and limits the number under way.
#pragma once

#include "common/base/lifetime.h"
#include "zk/transport.h"

#include <cstddef>
#include <cstdint>
#include <deque>

namespace baton::zk {

class Outbox {
 public:
  // The C client drops its connection when more than 64 Ki requests wait for its I/O thread, and
  // the server throttles at 1,000.
  static constexpr std::size_t kUnderWay = 1024;

  Outbox();
  ~Outbox();  // waiting and sent requests get no answer
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  void attach(Transport* transport) noexcept { transport_ = transport; }

  // connection: the number of the connection on which the request was sent.
  using Answer = UniqueFunction<void(Reply&, std::uint64_t connection)>;
  // wanted: called right before sending. If it returns false, the request is neither sent nor
  // answered.
  using Wanted = UniqueFunction<bool()>;
  std::uint64_t ask(Request request, Answer answer, Wanted wanted = nullptr);
  // Removes a request that waits. True: it was not sent, and gets no answer.
  bool recall(std::uint64_t id);

  void connected();
  void disconnected() noexcept { open_ = false; }
  bool open() const noexcept { return open_; }
  // The number of connections so far; 0: there was none yet.
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
  Lifetime lifetime_;
};

}  // namespace baton::zk
