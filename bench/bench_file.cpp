// Measures locks on a single machine: acquire and release of a free lock, and the hand-over between
// two processes. flock(2) is measured for comparison. flock(2) is not fair, has no token, and does
// not report a loss.

#include "bench.h"

#include <baton/baton.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>

namespace {

constexpr int kHandOvers = 2000;

// ---- a free lock: acquire and unlock -----------------------------------------------------------

void free_lock(benchmark::State& state, const std::string& url) {
  auto client = baton::Client::connect(url);
  auto mutex = client.mutex("bench/free");
  std::vector<std::int64_t> samples;
  samples.reserve(1 << 20);
  for (auto _ : state) {
    const auto start = bench::now_ns();
    {
      baton::Lock lock = mutex.acquire();
      benchmark::DoNotOptimize(lock.token());
    }
    samples.push_back(bench::now_ns() - start);
  }
  bench::report(state, std::move(samples));
}

void file_free_lock(benchmark::State& state) {
  bench::Scratch scratch;
  free_lock(state, scratch.url());
}

void memory_free_lock(benchmark::State& state) { free_lock(state, "memory:bench-free"); }

// The same with release(), which waits until the store has confirmed the release.
void file_free_lock_confirmed(benchmark::State& state) {
  bench::Scratch scratch;
  auto client = baton::Client::connect(scratch.url());
  auto mutex = client.mutex("bench/free");
  std::vector<std::int64_t> samples;
  samples.reserve(1 << 20);
  for (auto _ : state) {
    const auto start = bench::now_ns();
    mutex.acquire().release();
    samples.push_back(bench::now_ns() - start);
  }
  bench::report(state, std::move(samples));
}

void flock_free_lock(benchmark::State& state) {
  bench::Scratch scratch;
  const int fd = open((scratch.path() + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  std::vector<std::int64_t> samples;
  samples.reserve(1 << 22);
  for (auto _ : state) {
    const auto start = bench::now_ns();
    flock(fd, LOCK_EX);
    flock(fd, LOCK_UN);
    samples.push_back(bench::now_ns() - start);
  }
  close(fd);
  bench::report(state, std::move(samples));
}

// ---- hand-over: from the release in a contender to the grant in the other contender ------------

// Shared by the two contenders. Each holder waits until the other contender has asked for the lock,
// gives it time to go to sleep, records the time and releases the lock. The other contender records
// when it has the lock.
struct Table {
  std::atomic<int> asking[2];           // 1 while this side waits for the lock
  std::atomic<int> turn;                // which side held the lock last
  std::atomic<std::int64_t> let_go_ns;  // when the last holder released the lock
  std::atomic<bool> over;
};

// Runs one side. take() returns a function that releases the lock. Returns the times of the
// hand-overs to this side.
std::vector<std::int64_t> play(Table& table, int side,
                               const std::function<std::function<void()>()>& take, int rounds) {
  std::vector<std::int64_t> samples;
  while (!table.over && static_cast<int>(samples.size()) < rounds) {
    table.asking[side] = 1;
    auto let_go = take();
    const auto arrived = bench::now_ns();
    table.asking[side] = 0;
    if (table.turn.exchange(side) != side && table.let_go_ns != 0) {
      samples.push_back(arrived - table.let_go_ns);
    }
    while (!table.over && table.asking[1 - side] == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    // The other side is about to queue. Let it go to sleep, so that the sample includes a wake-up.
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    table.let_go_ns = bench::now_ns();
    let_go();
    // flock is not fair: wait until the other side has had the lock, or this side would take it
    // again.
    while (!table.over && table.asking[1 - side] != 0)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return samples;
}

std::function<std::function<void()>()> baton_taker(baton::DistributedMutex mutex) {
  return [mutex]() mutable -> std::function<void()> {
    auto lock = std::make_shared<baton::Lock>(mutex.acquire());
    return [lock]() mutable { *lock = baton::Lock(); };
  };
}

std::function<std::function<void()>()> flock_taker(int fd) {
  return [fd]() -> std::function<void()> {
    flock(fd, LOCK_EX);
    return [fd] { flock(fd, LOCK_UN); };
  };
}

Table* map_table(const std::string& file) {
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Table)) != 0) throw std::runtime_error("cannot make " + file);
  void* memory = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) throw std::runtime_error("cannot map " + file);
  return static_cast<Table*>(memory);  // all zero: a fresh table
}

int lock_file(const std::string& dir) {
  return open((dir + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

// The other process.
int play_as_peer(const std::string& kind, const std::string& dir) {
  alarm(120);
  Table& table = *map_table(dir + "/table");
  if (kind == "flock") {
    play(table, 1, flock_taker(lock_file(dir)), 1 << 30);
  } else {
    auto client = baton::Client::connect("file://" + dir + "/store");
    play(table, 1, baton_taker(client.mutex("bench/hand-over")), 1 << 30);
  }
  return 0;
}

void finish_hand_over(benchmark::State& state, Table& table,
                      const std::function<std::function<void()>()>& take) {
  std::vector<std::int64_t> samples;
  for (auto _ : state) {
    const auto fresh = play(table, 0, take, kHandOvers);
    std::int64_t sum = 0;
    for (const auto sample : fresh) sum += sample;
    state.SetIterationTime(static_cast<double>(sum) / 1e9 / static_cast<double>(fresh.size()));
    samples.insert(samples.end(), fresh.begin(), fresh.end());
  }
  table.over = true;
  bench::report(state, std::move(samples));
}

void file_hand_over(benchmark::State& state) {
  bench::Scratch scratch;
  Table& table = *map_table(scratch.path() + "/table");
  auto client = baton::Client::connect(scratch.url());
  bench::Peer peer({"--peer", "file", scratch.path()});
  finish_hand_over(state, table, baton_taker(client.mutex("bench/hand-over")));
}

void flock_hand_over(benchmark::State& state) {
  bench::Scratch scratch;
  Table& table = *map_table(scratch.path() + "/table");
  bench::Peer peer({"--peer", "flock", scratch.path()});
  finish_hand_over(state, table, flock_taker(lock_file(scratch.path())));
}

void memory_hand_over(benchmark::State& state) {
  Table table{};
  auto mine = baton::Client::connect("memory:bench-hand-over");
  auto theirs = baton::Client::connect("memory:bench-hand-over");
  std::jthread peer([&] { play(table, 1, baton_taker(theirs.mutex("bench/hand-over")), 1 << 30); });
  finish_hand_over(state, table, baton_taker(mine.mutex("bench/hand-over")));
}

BENCHMARK(flock_free_lock)->Unit(benchmark::kMicrosecond);
BENCHMARK(memory_free_lock)->Unit(benchmark::kMicrosecond);
BENCHMARK(file_free_lock)->Unit(benchmark::kMicrosecond);
BENCHMARK(file_free_lock_confirmed)->Unit(benchmark::kMicrosecond);
BENCHMARK(flock_hand_over)->Unit(benchmark::kMicrosecond)->UseManualTime()->Iterations(1);
BENCHMARK(memory_hand_over)->Unit(benchmark::kMicrosecond)->UseManualTime()->Iterations(1);
BENCHMARK(file_hand_over)->Unit(benchmark::kMicrosecond)->UseManualTime()->Iterations(1);

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "--peer") == 0) return play_as_peer(argv[2], argv[3]);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
