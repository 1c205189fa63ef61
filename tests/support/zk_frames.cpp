#include "support/zk_frames.h"

#include <algorithm>

namespace baton::test {
namespace {

std::uint32_t number_at(const unsigned char* p) {
  return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
}

}  // namespace

// The size of the current message with its length field, as far as it is known.
std::size_t ZkFrameScanner::wanted() const {
  return read_ < 4 ? 4 : std::size_t{4} + number_at(head_.data());
}

std::size_t ZkFrameScanner::next(std::string_view data) {
  std::size_t used = 0;
  while (used < data.size()) {
    const std::size_t n = std::min(wanted() - read_, data.size() - used);
    for (std::size_t i = 0; i < n && read_ + i < head_.size(); ++i) {
      head_[read_ + i] = static_cast<unsigned char>(data[used + i]);
    }
    read_ += n;
    used += n;
    if (read_ < 4 || read_ < wanted()) continue;
    frame_.size = read_ - 4;
    frame_.xid = frame_.size >= 4 ? static_cast<std::int32_t>(number_at(head_.data() + 4)) : 0;
    frame_.type = frame_.size >= 8 ? static_cast<std::int32_t>(number_at(head_.data() + 8)) : 0;
    read_ = 0;
    return used;
  }
  return 0;
}

}  // namespace baton::test
