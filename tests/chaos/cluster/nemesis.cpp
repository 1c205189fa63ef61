#include "chaos/cluster/nemesis.h"

#include "support/boot_clock.h"
#include "support/eventually.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <stdexcept>
#include <thread>

namespace baton::chaos {

using test::boot_now;

Fault::Fault(Scene& scene, const std::string& kind, const std::string& target)
    : scene_(scene), number_(++scene.faults) {
  {
    const std::lock_guard guard(scene.mutex);
    ++scene.kinds[kind];
  }
  Record record;
  record.kind = Kind::fault;
  record.op = number_;
  record.text = kind + " " + target;
  record.at = boot_now();
  scene.history.write(record);
}

void Fault::undoing() const { note(Kind::resumed); }
void Fault::expired(std::uint64_t leases) const { note(Kind::expired, leases); }
Fault::~Fault() { note(Kind::healed); }

void Fault::note(Kind kind, std::uint64_t value) const {
  Record record;
  record.kind = kind;
  record.op = number_;
  record.value = value;
  record.at = boot_now();
  scene_.history.write(record);
}

void pass(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

void require(const std::string& what, const std::function<bool()>& condition,
             std::chrono::milliseconds limit) {
  if (!test::eventually(what, condition, limit)) {
    throw std::runtime_error("it did not happen: " + what);
  }
}

void patiently(const std::function<bool()>& step) {
  constexpr std::chrono::seconds kPatience{40};
  const test::Stopwatch watch;
  for (int refused = 0; refused < 200; pass(std::chrono::milliseconds(50))) {
    try {
      if (step()) return;
      ++refused;
    } catch (const std::exception&) {
      if (watch.elapsed() >= kPatience) throw;
    }
  }
  throw std::runtime_error("an operator has given up");
}

std::vector<InLine> line_of(Scene& scene, std::uint32_t lock) {
  auto all = scene.cluster.in_line(scene.locks);
  std::erase_if(all, [&](const InLine& entry) { return entry.lock != lock; });
  return all;
}

namespace {
void problem(Scene& scene, const std::exception& error) {
  const std::lock_guard guard(scene.mutex);
  scene.problems.emplace_back(error.what());
}
}  // namespace

void break_things(Scene& scene, std::vector<FaultKind> kinds, std::uint64_t seed,
                  std::chrono::milliseconds every, const Care& care, const std::stop_token& stop) {
  std::mt19937_64 random(seed);
  std::mutex mine;
  std::condition_variable_any waiting;
  if (kinds.empty()) {  // --only names no fault for this thread
    std::unique_lock guard(mine);
    waiting.wait(guard, stop, [] { return false; });
    return;
  }
  std::size_t next = kinds.size();
  while (!stop.stop_requested()) {
    if (next == kinds.size()) {
      std::shuffle(kinds.begin(), kinds.end(), random);
      next = 0;
    }
    Draw draw;
    draw.pick = random() >> 1;
    draw.lock = static_cast<std::uint32_t>(random() % static_cast<unsigned>(scene.locks));
    draw.other = random() % 2 == 0;
    draw.long_one = random() % 2 == 0;
    draw.percent = static_cast<int>(random() % 101);
    const auto gap = every * (50 + random() % 101) / 100;
    try {
      care.upkeep();
      kinds[next++].make(scene, draw);
    } catch (const std::exception& error) {
      problem(scene, error);
      try {
        care.repair();
      } catch (const std::exception& again) {
        problem(scene, again);
        return;
      }
    }
    std::unique_lock guard(mine);
    waiting.wait_for(guard, stop, gap, [] { return false; });
  }
}

}  // namespace baton::chaos
