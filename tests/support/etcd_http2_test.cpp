// Checks that Http2Scanner and HpackReader decode the frames and headers of HTTP/2, also if the
// bytes arrive in pieces.
#include "support/hpack.h"
#include "support/http2_frames.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace baton::test {
namespace {

// "82 86 84"
std::string hex(const std::string& text) {
  std::string out;
  const char* at = text.c_str();
  for (char* end = nullptr;; at = end) {
    const auto byte = std::strtoul(at, &end, 16);
    if (end == at) return out;
    out.push_back(static_cast<char>(byte));
  }
}

std::string frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream,
                  const std::string& payload) {
  std::string out;
  for (const int shift : {16, 8, 0}) out.push_back(static_cast<char>(payload.size() >> shift));
  out.push_back(static_cast<char>(type));
  out.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0}) out.push_back(static_cast<char>(stream >> shift));
  return out + payload;
}

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const std::string kSettings = frame(4, 0, 0, "");

// A ":path" header with this value, which the decoder keeps in its table.
std::string path_header(const std::string& path) {
  return std::string("\x44") + static_cast<char>(path.size()) + path;
}

// The frames that the scanner finds when it receives the bytes in pieces of this size.
std::vector<Http2Frame> frames_in(Http2Scanner& scanner, const std::string& bytes,
                                  std::size_t piece) {
  std::vector<Http2Frame> all;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    std::string_view left = std::string_view(bytes).substr(at, piece);
    while (const auto used = scanner.next(left)) {
      all.push_back(scanner.frame());
      left.remove_prefix(used);
    }
  }
  return all;
}

std::vector<Http2Frame> frames_in(const std::string& bytes, std::size_t piece = 1000,
                                  bool from_caller = true) {
  Http2Scanner scanner(from_caller, std::make_shared<Http2Calls>());
  return frames_in(scanner, bytes, piece);
}

TEST(Hpack, ReadsTheExamplesOfTheStandard) {  // RFC 7541, C.3 and C.4
  HpackReader plain;
  EXPECT_EQ(plain.path_in(hex("82 86 84 41 0f 77 77 77 2e 65 78 61 6d 70 6c 65 2e 63 6f 6d")), "/");
  EXPECT_EQ(plain.path_in(hex("82 86 84 be 58 08 6e 6f 2d 63 61 63 68 65")), "/");
  EXPECT_EQ(plain.path_in(hex("82 87 85 bf 40 0a 63 75 73 74 6f 6d 2d 6b 65 79 0c 63 75 73 74 6f "
                              "6d 2d 76 61 6c 75 65")),
            "/index.html");
  HpackReader coded;
  EXPECT_EQ(coded.path_in(hex("82 86 84 41 8c f1 e3 c2 e5 f2 3a 6b a0 ab 90 f4 ff")), "/");
  EXPECT_EQ(coded.path_in(hex("82 86 84 be 58 86 a8 eb 10 64 9c bf")), "/");
  EXPECT_EQ(
      coded.path_in(hex("82 87 85 bf 40 88 25 a8 49 e9 5b a9 7d 7f 89 25 a8 49 e9 5b b8 e8 b4 bf")),
      "/index.html");
  EXPECT_EQ(from_huffman(hex("f1 e3 c2 e5 f2 3a 6b a0 ab 90 f4 ff")), "www.example.com");
}

TEST(Hpack, RemembersPathsAndForgetsTheOldest) {
  HpackReader reader;
  EXPECT_EQ(reader.path_in(path_header("/one")), "/one");
  EXPECT_EQ(reader.path_in(path_header("/two")), "/two");
  EXPECT_EQ(reader.path_in(hex("be")), "/two");
  EXPECT_EQ(reader.path_in(hex("bf")), "/one");
  EXPECT_EQ(reader.path_in(hex("82")), "");  // this block has no path
  // Now the table has 42 bytes, enough for one header.
  EXPECT_EQ(reader.path_in(hex("3f 0b be")), "/two");
  EXPECT_EQ(reader.path_in(hex("bf")), std::nullopt);
}

TEST(Hpack, WhatIsNotWellFormedIsSaid) {
  for (const auto* bad : {"c0", "80", "44", "44 05 2f", "44 81 00", "7f ff ff ff ff ff ff"}) {
    EXPECT_EQ(HpackReader().path_in(hex(bad)), std::nullopt) << bad;
  }
}

TEST(Http2, FramesAreFoundInPiecesOfAnySize) {
  const std::string call = path_header("/etcdserverpb.KV/Put");
  const std::string bytes = kPreface + kSettings + frame(1, 4, 1, call) + frame(0, 1, 1, "hello") +
                            frame(6, 0, 0, "12345678");
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    const auto all = frames_in(bytes, piece);
    ASSERT_EQ(all.size(), 4U) << piece;
    EXPECT_EQ(all[0].type, 4);
    EXPECT_TRUE(grpc_headers(all[1]));
    EXPECT_EQ(all[1].size, call.size());
    EXPECT_EQ(all[2].type, 0);
    EXPECT_EQ(all[2].flags, 1);
    EXPECT_EQ(all[2].stream, 1U);
    EXPECT_EQ(all[2].size, 5U);
    EXPECT_EQ(all[2].path, "/etcdserverpb.KV/Put");
    EXPECT_TRUE(grpc_messages(all[2]));
    EXPECT_TRUE(grpc_method("KV/Put")(all[2]));
    EXPECT_FALSE(grpc_method("KV/Range")(all[2]));
    EXPECT_FALSE(grpc_messages(all[3]));
    EXPECT_EQ(all[3].path, "");
  }
}

TEST(Http2, HeadersMayBePaddedAndGoOnInOtherFrames) {
  const std::string call = path_header("/a.B/C");
  const std::string padded =
      std::string(1, 3) + std::string(5, 'p') + call.substr(0, 4) + std::string(3, '\0');
  const auto all = frames_in(kPreface + kSettings + frame(1, 8 | 32, 1, padded) +
                             frame(9, 4, 1, call.substr(4)) + frame(0, 0, 1, "x"));
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[3].path, "/a.B/C");
}

TEST(Http2, AnswersBelongToTheirCallUntilItEnds) {
  const auto calls = std::make_shared<Http2Calls>();
  Http2Scanner up(true, calls);
  Http2Scanner down(false, calls);
  frames_in(up, kPreface + kSettings + frame(1, 4, 1, path_header("/a.B/C")), 1000);
  const auto all = frames_in(
      down, kSettings + frame(1, 4, 1, "\x88") + frame(0, 0, 1, "x") + frame(1, 5, 1, "\x88"), 3);
  ASSERT_EQ(all.size(), 4U);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(all[i].path, "/a.B/C");
  EXPECT_TRUE(calls->empty());
}

TEST(Http2, OtherProtocolsHaveNoFrames) {
  EXPECT_TRUE(frames_in("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").empty());
  EXPECT_TRUE(frames_in("HTTP/1.1 200 OK\r\n\r\n", 1000, false).empty());
  const std::string zookeeper = hex("00 00 00 08 ff ff ff fe 00 00 00 0b");
  EXPECT_TRUE(frames_in(zookeeper + zookeeper).empty());
  EXPECT_TRUE(frames_in(zookeeper + zookeeper, 1000, false).empty());
  EXPECT_TRUE(frames_in(kPreface + frame(0, 0, 1, "no settings")).empty());
}

}  // namespace
}  // namespace baton::test
