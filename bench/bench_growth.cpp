// Measures whether a lock gets slower with use: many acquires and confirmed releases of one name.
// Prints the median and the 99th percentile of each block as CSV.
//   bench_growth URL [ACQUIRES] [BLOCK]     default: 100000 acquires in blocks of 10000

#include "bench.h"

#include <baton/baton.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

int main(int argc, char** argv) try {
  const std::string url = argc > 1 ? argv[1] : "";
  const int acquires = argc > 2 ? std::atoi(argv[2]) : 100'000;
  const int block = argc > 3 ? std::atoi(argv[3]) : 10'000;
  if (url.empty() || acquires <= 0 || block <= 0 || block > acquires) {
    std::fprintf(stderr, "usage: bench_growth URL [ACQUIRES] [BLOCK]\n");
    return 64;
  }
  auto client = baton::Client::connect(url);
  auto mutex = client.mutex("bench/growth");
  for (int n = 0; n < 100; ++n) mutex.acquire().release();
  std::vector<std::int64_t> samples;
  std::printf("acquires,p50_us,p99_us\n");
  for (int n = 1; n <= acquires; ++n) {
    const auto start = bench::now_ns();
    mutex.acquire().release();
    samples.push_back(bench::now_ns() - start);
    if (n % block != 0) continue;
    const auto p50 = bench::percentile_us(samples, 0.50);
    const auto p99 = bench::percentile_us(samples, 0.99);
    std::printf("%d,%.1f,%.1f\n", n, p50, p99);
    std::fflush(stdout);
    samples.clear();
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_growth: %s\n", error.what());
  return 1;
}
