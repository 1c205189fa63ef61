// Finds the frames in an HTTP/2 byte stream (RFC 9113), the protocol of gRPC.
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
  std::uint8_t flags = 0;    // 1: this direction of the stream ends; or an acknowledgement
  std::uint32_t stream = 0;  // 0: the connection itself
  std::size_t size = 0;      // without the nine bytes of the frame's header
  std::string path;          // the call of this stream: "/etcdserverpb.KV/Put"; "" if unknown
};

// Selects the frames that count.
using Http2Filter = std::function<bool(const Http2Frame&)>;

// Requests and answers. A message of up to 16 KB is one frame.
inline bool grpc_messages(const Http2Frame& frame) { return frame.type == 0 && frame.size > 0; }
// The frames that begin a call; towards the client also the frames that end a call, with its
// status.
inline bool grpc_headers(const Http2Frame& frame) { return frame.type == 1; }
// Messages of one method, such as "KV/Put" or "Watch/Watch", in either direction.
inline Http2Filter grpc_method(const std::string& method) {
  return [end = "." + method](const Http2Frame& frame) {
    return grpc_messages(frame) && frame.path.ends_with(end);
  };
}

// The open calls of a connection by stream, shared by the scanners of both directions. Only one
// thread may use it.
using Http2Calls = std::map<std::uint32_t, std::string>;  // stream to path

// Follows one direction of one connection from its first byte. If the bytes do not begin as HTTP/2
// does, it finds no frames.
class Http2Scanner {
 public:
  // `from_caller`: this is the direction from the peer that opened the connection. Both directions
  // share `calls`.
  Http2Scanner(bool from_caller, std::shared_ptr<Http2Calls> calls);

  // Reads `data` up to the end of a frame. Returns the number of bytes that it read, or 0 if no
  // frame ends in `data`; then it has read all of it.
  std::size_t next(std::string_view data);

  // The last complete frame.
  const Http2Frame& frame() const noexcept { return frame_; }
  std::size_t frame_bytes() const noexcept { return kHead + frame_.size; }

 private:
  static constexpr std::size_t kHead = 9;
  bool begun();   // `head_` is complete; false: this is not HTTP/2
  void ended();   // the frame is complete
  void opened();  // a call begins with the headers in `block_`

  const bool from_caller_;
  const std::shared_ptr<Http2Calls> calls_;
  bool off_ = false;
  bool first_ = true;
  std::size_t preface_left_;
  std::array<unsigned char, kHead> head_{};
  std::size_t read_ = 0;  // bytes read of the current frame
  Http2Frame now_;        // the current frame, known when its header is complete
  Http2Frame frame_;
  std::string payload_;  // of the current frame, if it has headers
  std::string block_;
  bool readable_ = true;
  HpackReader headers_;
};

}  // namespace baton::test
