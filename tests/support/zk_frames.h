// Finds the messages in a ZooKeeper byte stream. A message is a big-endian length of four bytes and
// then that many bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace baton::test {

// The fields in the first bytes of a message.
struct ZkFrame {
  std::size_t size = 0;   // without the four bytes of the length
  std::int32_t xid = 0;   // 0 connect, -1 watch event, -2 ping, -4 auth, -8 set watches; else > 0
  std::int32_t type = 0;  // operation, only in requests: 1 create, 2 delete, -11 close session ...
};

// Selects the messages that count.
using ZkFrameFilter = std::function<bool(const ZkFrame&)>;

// Requests and their answers, but not connects, pings or watch events.
inline bool zk_requests(const ZkFrame& frame) { return frame.xid > 0; }
// Requests of one operation (ZOO_CREATE_OP ...). Only towards the server, because answers do not
// name the operation.
inline ZkFrameFilter zk_operation(std::int32_t type) {
  return [type](const ZkFrame& frame) { return frame.xid > 0 && frame.type == type; };
}

// Follows one direction of one connection from its first byte.
class ZkFrameScanner {
 public:
  // Reads `data` up to the end of a message. Returns the number of bytes that it read, or 0 if no
  // message ends in `data`; then it has read all of it.
  std::size_t next(std::string_view data);

  // The last complete message.
  const ZkFrame& frame() const noexcept { return frame_; }

 private:
  std::size_t wanted() const;

  std::array<unsigned char, 12> head_{};  // length, xid, type
  std::size_t read_ = 0;
  ZkFrame frame_;
};

}  // namespace baton::test
