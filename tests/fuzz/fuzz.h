// Shared by all fuzz targets: how to read decisions from an input, and how to report a failed
// check.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace baton::fuzz {

// An input as a sequence of small decisions. After the end of the input all reads return zeros.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}

  bool empty() const noexcept { return rest_.empty(); }
  std::uint8_t byte() noexcept {
    if (rest_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  std::uint64_t word() noexcept {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }
  std::size_t below(std::size_t limit) noexcept { return byte() % limit; }
  bool flag() noexcept { return (byte() & 1) != 0; }
  std::string_view take(std::size_t size) noexcept {
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string text() { return std::string(take(byte())); }  // at most 255 bytes
  std::string_view rest() noexcept { return take(rest_.size()); }
  // A number: an extreme value, a small value, or any value.
  std::uint64_t edge() noexcept {
    static constexpr std::array<std::uint64_t, 14> kEdges{0,
                                                          1,
                                                          2,
                                                          64,
                                                          0x7fffffff,
                                                          0x80000000,
                                                          0xffffffff,
                                                          1'700'000'000'000'000,
                                                          (std::uint64_t{1} << 62),
                                                          (std::uint64_t{1} << 63) - 1,
                                                          (std::uint64_t{1} << 63) - 64,
                                                          (std::uint64_t{1} << 63),
                                                          ~std::uint64_t{0},
                                                          ~std::uint64_t{0} - 4};
    const std::size_t which = byte();
    return which < kEdges.size() ? kEdges[which] : which < 128 ? which : word();
  }

 private:
  std::string_view rest_;
};

// Prints the check that failed and aborts, so that the fuzzer keeps the input.
[[noreturn]] inline void broken(const char* file, int line, const char* promise,
                                const std::string& detail) {
  std::fprintf(stderr, "%s:%d: broken: %s%s%s\n", file, line, promise, detail.empty() ? "" : ": ",
               detail.c_str());
  std::abort();
}

using Body = void (*)(std::string_view);

// All targets of a binary, by name, for the program that replays the corpus.
struct Target {
  const char* name;
  Body body;
};
inline std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}
struct Registered {
  Registered(const char* name, Body body) { targets().push_back({name, body}); }
};

}  // namespace baton::fuzz

#define FUZZ_REQUIRE(promise, ...)                                                                 \
  do {                                                                                             \
    if (!(promise)) ::baton::fuzz::broken(__FILE__, __LINE__, #promise, std::string(__VA_ARGS__)); \
  } while (false)

// Defines the body of a target. For libFuzzer this is the entry point. With BATON_FUZZ_REPLAY the
// target is one of several that the replay program can run.
#ifdef BATON_FUZZ_REPLAY
#define FUZZ_TARGET(name)                                                       \
  static void fuzz_##name(std::string_view);                                    \
  static const ::baton::fuzz::Registered registered_##name(#name, fuzz_##name); \
  static void fuzz_##name(std::string_view input)
#else
#define FUZZ_TARGET(name)                                                             \
  static void fuzz_##name(std::string_view);                                          \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);  \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    fuzz_##name({reinterpret_cast<const char*>(data), size});                         \
    return 0;                                                                         \
  }                                                                                   \
  static void fuzz_##name(std::string_view input)
#endif
