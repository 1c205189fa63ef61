#include "support/http2_frames.h"

#include <algorithm>
#include <utility>

namespace baton::test {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

constexpr std::uint8_t kHeaders = 1;
constexpr std::uint8_t kReset = 3;
constexpr std::uint8_t kSettings = 4;
constexpr std::uint8_t kContinuation = 9;

constexpr std::uint8_t kEndStream = 1;
constexpr std::uint8_t kEndHeaders = 4;
constexpr std::uint8_t kPadded = 8;
constexpr std::uint8_t kPriority = 32;

bool has_headers(const Http2Frame& frame) {
  return frame.type == kHeaders || frame.type == kContinuation;
}

// The header block of a frame, without padding and priority.
std::string_view block_in(const Http2Frame& frame, std::string_view payload) {
  if (frame.type != kHeaders) return payload;
  std::size_t before = 0;
  std::size_t after = 0;
  if ((frame.flags & kPadded) != 0 && !payload.empty()) {
    before = 1;
    after = static_cast<unsigned char>(payload[0]);
  }
  if ((frame.flags & kPriority) != 0) before += 5;
  if (before + after > payload.size()) return {};
  return payload.substr(before, payload.size() - before - after);
}

}  // namespace

Http2Scanner::Http2Scanner(bool from_caller, std::shared_ptr<Http2Calls> calls)
    : from_caller_(from_caller),
      calls_(std::move(calls)),
      preface_left_(from_caller ? kPreface.size() : 0) {}

std::size_t Http2Scanner::next(std::string_view data) {
  std::size_t used = 0;
  for (; !off_ && preface_left_ > 0 && used < data.size(); ++used, --preface_left_) {
    off_ = data[used] != kPreface[kPreface.size() - preface_left_];
  }
  while (!off_ && used < data.size()) {
    if (read_ < kHead) {
      head_[read_++] = static_cast<unsigned char>(data[used++]);
      if (read_ == kHead) off_ = !begun();
    } else {
      const std::size_t n = std::min(kHead + now_.size - read_, data.size() - used);
      if (has_headers(now_)) payload_ += data.substr(used, n);
      read_ += n;
      used += n;
    }
    if (off_ || read_ < kHead || read_ < kHead + now_.size) continue;
    read_ = 0;
    ended();
    return used;
  }
  return 0;
}

bool Http2Scanner::begun() {
  now_.size = std::size_t{head_[0]} << 16 | std::size_t{head_[1]} << 8 | head_[2];
  now_.type = head_[3];
  now_.flags = head_[4];
  now_.stream = (std::uint32_t{head_[5]} << 24 | std::uint32_t{head_[6]} << 16 |
                 std::uint32_t{head_[7]} << 8 | head_[8]) &
                0x7fffffff;
  payload_.clear();
  // Both directions begin with a settings frame.
  return !std::exchange(first_, false) || (now_.type == kSettings && now_.stream == 0);
}

void Http2Scanner::ended() {
  if (from_caller_ && has_headers(now_)) {
    block_ += block_in(now_, payload_);
    if ((now_.flags & kEndHeaders) != 0) opened();
  }
  frame_ = now_;
  const auto call = calls_->find(frame_.stream);
  frame_.path = call == calls_->end() ? "" : call->second;
  const bool over = frame_.type == kReset ||
                    (!from_caller_ && frame_.type <= kHeaders && (frame_.flags & kEndStream) != 0);
  if (over) calls_->erase(frame_.stream);
}

void Http2Scanner::opened() {
  if (readable_) {
    const auto path = headers_.path_in(block_);
    readable_ = path.has_value();
    if (path && !path->empty()) (*calls_)[now_.stream] = *path;
  }
  block_.clear();
}

}  // namespace baton::test
