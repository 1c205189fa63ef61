// Creates nodes and keys as other programs do in the directories of locks: entries of other
// libraries, and nodes that are not entries.
#include "chaos/cluster/contender.h"
#include "chaos/cluster/nemesis.h"
#include "chaos/cluster/register.h"
#include "support/boot_clock.h"

#include <algorithm>
#include <memory>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;

// Longer than servers are away, with the recovery after it.
constexpr auto kGoesOn = 60s;

std::string span(std::chrono::milliseconds time) {
  return " for " + std::to_string(time.count()) + " ms";
}

void name_foreign(Scene& scene, const InLine& entry) {
  Record record;
  record.kind = Kind::foreign;
  record.lock = entry.lock;
  record.token = entry.token;
  record.at = test::boot_now();
  scene.history.write(record);
}

std::uint64_t writes(Scene& scene, std::uint32_t lock) {
  return register_value(scene.directory, lock);
}

void leave(Scene& scene, const Draw& draw, Guest& guest) {
  patiently([&] {
    if (!guest.leave()) return false;
    const auto line = line_of(scene, draw.lock);
    return std::none_of(line.begin(), line.end(),
                        [&](const InLine& entry) { return entry.where == guest.where(); });
  });
}

// The foreign entry waits for its turn, and then holds the lock while a client waits behind it. The
// observer sees it like any other entry, so checker fifo objects if a client is valid meanwhile.
void foreign_entry(Scene& scene, const Draw& draw) {
  const auto peers = scene.cluster.peers();
  const auto& peer = peers[draw.pick % peers.size()];
  const Fault fault(scene, "foreign entry",
                    "of " + peer + " in " + lock_name(draw.lock) + span(draw.time()));
  std::unique_ptr<Guest> guest;
  std::uint64_t token = 0;
  patiently([&] {
    if (!guest) guest = scene.cluster.peer_joins(draw.lock, peer);
    const auto line = line_of(scene, draw.lock);
    const auto found = std::find_if(line.begin(), line.end(), [&](const InLine& entry) {
      return entry.where == guest->where();
    });
    if (found == line.end()) {  // servers failed, and its session has ended
      guest.reset();
      return false;
    }
    if (token != found->token) name_foreign(scene, *found);
    token = found->token;
    return found == line.begin() && line.size() > 1;
  });
  pass(draw.time());
  const auto before = writes(scene, draw.lock);
  leave(scene, draw, *guest);
  require(
      "a client has the lock after a foreign entry",
      [&] { return writes(scene, draw.lock) > before; }, kGoesOn);
}

// Clients must not wait for a node that is not an entry.
void no_entry(Scene& scene, const Draw& draw) {
  const Fault fault(scene, "no entry", "in " + lock_name(draw.lock) + span(draw.time()));
  std::unique_ptr<Guest> guest;
  patiently([&] {
    if (!guest) guest = scene.cluster.no_entry(draw.lock);
    pass(draw.time());
    const auto before = writes(scene, draw.lock);
    require(
        "a client has the lock beside what is no entry",
        [&] { return writes(scene, draw.lock) > before + 1; }, kGoesOn);
    if (guest->there()) return true;
    guest.reset();  // servers failed, and its session has ended
    return false;
  });
  leave(scene, draw, *guest);
}

}  // namespace

std::vector<FaultKind> foreign_faults() {
  return {
      {"foreign entry", foreign_entry}, {"foreign entry", foreign_entry}, {"no entry", no_entry}};
}

}  // namespace baton::chaos
