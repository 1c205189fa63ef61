// Actions of operators on entries, directories and sessions. The history names each entry before it
// is removed.
#include "chaos/cluster/contender.h"
#include "chaos/cluster/nemesis.h"
#include "support/boot_clock.h"

#include <baton/baton.h>

#include <algorithm>
#include <stdexcept>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;

void name_evicted(Scene& scene, std::uint32_t lock, std::uint64_t token) {
  Record record;
  record.kind = Kind::evicted;
  record.lock = lock;
  record.token = token;
  record.at = test::boot_now();
  scene.history.write(record);
}

// Evicts as the `baton` command does, through a client.
void evict(Scene& scene, const Draw& draw) {
  ClientOptions options;
  options.connect_timeout = 20s;
  options.log = [](LogLevel, std::string_view) {};
  const bool waiter = draw.other;
  const Fault fault(scene, waiter ? "evict waiter" : "evict holder",
                    lock_name(draw.lock) + " first");
  auto client = Client::connect(scene.cluster.url(scene.cluster.ports()), options);
  bool done = false;
  for (std::uint32_t i = 0; i < 400 && !done; ++i) {  // an entry may be gone before the call
    const auto lock = (draw.lock + i) % static_cast<std::uint32_t>(scene.locks);
    const auto line = client.inspect(lock_name(lock)).entries;
    if (line.size() < (waiter ? 2U : 1U)) {
      pass(20ms);
      continue;
    }
    const auto& entry = waiter ? line.back() : line.front();
    name_evicted(scene, lock, entry.token);
    done = client.evict(lock_name(lock), entry.id);
  }
  client.close();
  if (!done) throw std::runtime_error("nobody to be evicted");
}

void delete_entry(Scene& scene, const Draw& draw) {
  const Fault fault(scene, "delete entry", lock_name(draw.lock));
  patiently([&] {
    const auto line = line_of(scene, draw.lock);
    if (line.empty()) return false;
    const auto& entry = line[draw.other ? 0 : draw.pick % line.size()];
    name_evicted(scene, draw.lock, entry.token);
    return scene.cluster.remove(entry);
  });
}

// Removes all entries of the directory and the directory itself, while clients join.
void delete_directory(Scene& scene, const Draw& draw) {
  const Fault fault(scene, "delete directory", lock_name(draw.lock));
  patiently([&] {
    for (const auto& entry : line_of(scene, draw.lock)) {
      name_evicted(scene, draw.lock, entry.token);
      scene.cluster.remove(entry);
    }
    return scene.cluster.remove_directory(draw.lock);
  });
}

// The client is stopped meanwhile, so that its entries are known and can be recorded.
void end_session(Scene& scene, const Draw& draw) {
  const auto all = scene.observer.latest();
  std::vector<InLine> fit;
  for (const auto& entry : all) {
    if (entry.lock == draw.lock && scene.crew.find(entry.client) != nullptr) fit.push_back(entry);
  }
  if (fit.empty()) return;
  const InLine one = fit[draw.other ? 0 : draw.pick % fit.size()];
  auto& seat = *scene.crew.find(one.client);
  const Fault fault(scene, "end session", std::to_string(one.client));
  scene.crew.pause(seat);
  try {
    std::vector<std::uint64_t> before;
    patiently([&] {  // when two readings agree, all requests of the client have arrived
      std::vector<std::uint64_t> now;
      for (const auto& entry : scene.cluster.in_line(scene.locks)) {
        if (entry.session != one.session) continue;
        name_evicted(scene, entry.lock, entry.token);
        now.push_back(entry.token);
      }
      const bool same = now == before;
      before = now;
      return same;
    });
    patiently([&] {
      scene.cluster.end_session(one);
      const auto left = scene.cluster.in_line(scene.locks);
      return std::none_of(left.begin(), left.end(),
                          [&](const InLine& entry) { return entry.session == one.session; });
    });
  } catch (...) {
    scene.crew.resume(seat);
    throw;
  }
  scene.crew.resume(seat);
}

}  // namespace

std::vector<FaultKind> operator_faults() {
  return {{"evict", evict},
          {"evict", evict},
          {"delete entry", delete_entry},
          {"delete directory", delete_directory},
          {"end session", end_session}};
}

}  // namespace baton::chaos
