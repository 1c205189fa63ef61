// The frames in an HTTP/2 byte stream (RFC 9113), which is what gRPC speaks.
#pragma once

#include "support/hpack.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace baton::test {

struct Http2Frame {
  std::uint8_t type = 0;     // 0 data, 1 headers, 3 reset, 4 settings, 6 ping, 7 go away, 8 window
  std::uint8_t flags = 0;    // 1: the end of this direction of the stream; or an acknowledgement
  std::uint32_t stream = 0;  // 0: the connection itself
  std::size_t size = 0;      // without the nine bytes before it
  std::string path;          // the call that the stream is: "/etcdserverpb.KV/Put"; "" if unknown
};

// Which frames count.
using Http2Filter = std::function<bool(const Http2Frame&)>;

// Requests and answers. A message of up to 16 KB is one frame.
inline bool grpc_messages(const Http2Frame& frame) { return frame.type == 0 && frame.size > 0; }
// Where calls begin; towards the client also where they end, with their status.
inline bool grpc_headers(const Http2Frame& frame) { return frame.type == 1; }
// Messages of one method, "KV/Put" or "Watch/Watch", in either direction.
inline Http2Filter grpc_method(const std::string& method) {
  return [end = "." + method](const Http2Frame& frame) {
    return grpc_messages(frame) && frame.path.ends_with(end);
  };
}

// What the two directions of a connection know together. For one thread.
using Http2Calls = std::map<std::uint32_t, std::string>;  // stream to path

// Follows one direction of one connection, from its first byte. If that does not begin as HTTP/2
// does, there are no frames in it.
class Http2Scanner {
 public:
  // `from_caller`: the direction of who opened the connection. The other one has the same `calls`.
  Http2Scanner(bool from_caller, std::shared_ptr<Http2Calls> calls);

  // Reads on in `data` to the end of a frame. Returns how many bytes that took, 0 if no frame ends
  // in it; then all of it was read.
  std::size_t next(std::string_view data);

  // The frame that ended last.
  const Http2Frame& frame() const noexcept { return frame_; }
  std::size_t frame_bytes() const noexcept { return kHead + frame_.size; }

 private:
  static constexpr std::size_t kHead = 9;
  bool begun();   // `head_` is complete; false: not HTTP/2
  void ended();   // the frame is complete
  void opened();  // with the headers in `block_`

  const bool from_caller_;
  const std::shared_ptr<Http2Calls> calls_;
  bool off_ = false;
  bool first_ = true;
  std::size_t preface_left_;
  std::array<unsigned char, kHead> head_{};
  std::size_t read_ = 0;  // of the present frame
  Http2Frame now_;        // the present one, from its head on
  Http2Frame frame_;
  std::string payload_;  // of the present one, if it has headers
  std::string block_;
  bool readable_ = true;
  HpackReader headers_;
};

}  // namespace baton::test
