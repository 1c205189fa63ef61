// The messages in a ZooKeeper byte stream: a length of four bytes, highest first, then that many.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace baton::test {

// What can be said of a message by its first bytes.
struct ZkFrame {
  std::size_t size = 0;   // without the length
  std::int32_t xid = 0;   // 0 connect, -1 watch event, -2 ping, -4 auth, -8 set watches; else > 0
  std::int32_t type = 0;  // operation, in requests only: 1 create, 2 delete, -11 close session ...
};

// Which messages count.
using ZkFrameFilter = std::function<bool(const ZkFrame&)>;

// Requests and their answers: neither connects nor pings nor watch events.
inline bool zk_requests(const ZkFrame& frame) { return frame.xid > 0; }
// Requests of one operation (ZOO_CREATE_OP ...). Towards the server only: answers do not name it.
inline ZkFrameFilter zk_operation(std::int32_t type) {
  return [type](const ZkFrame& frame) { return frame.xid > 0 && frame.type == type; };
}

// Follows one direction of one connection, from its first byte.
class ZkFrameScanner {
 public:
  // Reads on in `data` to the end of a message. Returns how many bytes that took, 0 if no message
  // ends in it; then all of it was read.
  std::size_t next(std::string_view data);

  // The message that ended last.
  const ZkFrame& frame() const noexcept { return frame_; }

 private:
  std::size_t wanted() const;

  std::array<unsigned char, 12> head_{};  // length, xid, type
  std::size_t read_ = 0;
  ZkFrame frame_;
};

}  // namespace baton::test
