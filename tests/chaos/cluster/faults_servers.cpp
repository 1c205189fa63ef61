// Faults of servers and of the network between them.
#include "chaos/cluster/nemesis.h"

#include <stdexcept>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;

std::string span(std::chrono::milliseconds time) {
  return " for " + std::to_string(time.count()) + " ms";
}

// A server that does not lead: the n-th after the leader.
int follower(Scene& scene, const Draw& draw) {
  const int size = scene.cluster.size();
  return (scene.cluster.leader() + 1 +
          static_cast<int>(draw.pick % static_cast<unsigned>(size - 1))) %
         size;
}

// ---- processes

void kill(Scene& scene, const Draw& draw, int server, const char* kind) {
  const auto time = kSession * draw.percent / 100;
  const Fault fault(scene, kind, std::to_string(server) + span(time));
  scene.cluster.kill(server);
  pass(time);
  scene.cluster.start(server, true);
  scene.cluster.wait_synced();
}
void kill_leader(Scene& s, const Draw& d) { kill(s, d, s.cluster.leader(), "kill leader"); }
void kill_follower(Scene& s, const Draw& d) { kill(s, d, follower(s, d), "kill follower"); }

// Some etcd leaders end leases after they are deposed: etcd#15247 (docs/stores/etcd.md). The proof
// is the server's own counter. It is read before the server is stopped, and again when no such
// revocation can come any more. Some revocations come when the server gives up waiting for earlier
// requests, which were lost with its leadership: after 5 s and two election timeouts of 500 ms.
constexpr auto kLeaseScan = 500ms;
constexpr auto kLastRevocation = 6s + 2 * kLeaseScan;

void pause(Scene& scene, const Draw& draw, int server, bool leads, const char* kind) {
  const Fault fault(scene, kind, std::to_string(server) + span(draw.time()));
  const auto before = leads ? scene.cluster.expired_leases(server) : std::nullopt;
  scene.cluster.pause(server);
  pass(draw.time());
  if (leads && draw.long_one) scene.cluster.leader_after(server);
  fault.undoing();
  scene.cluster.resume(server);
  scene.cluster.wait_synced();
  if (!before || scene.cluster.leader() == server) return;
  // Leases expire by the clock of the old leader only in a long pause.
  pass(draw.long_one ? kLastRevocation : kLeaseScan);
  const auto after = scene.cluster.expired_leases(server);
  if (after && *after > *before) fault.expired(*after - *before);
}
void pause_leader(Scene& s, const Draw& d) {
  pause(s, d, s.cluster.leader(), true, "pause leader");
}
void pause_follower(Scene& s, const Draw& d) {
  pause(s, d, follower(s, d), false, "pause follower");
}

void rolling_restart(Scene& scene, const Draw& draw) {
  const int size = scene.cluster.size();
  const Fault fault(scene, "rolling restart", std::to_string(size));
  for (int i = 0; i < size; ++i) {
    const int server = (i + static_cast<int>(draw.pick % static_cast<unsigned>(size))) % size;
    scene.cluster.kill(server);
    scene.cluster.start(server, true);
    scene.cluster.wait_synced();
  }
}

void kill_all(Scene& scene, const Draw& draw) {
  const int size = scene.cluster.size();
  const auto time = kSession * draw.percent / 100;
  const Fault fault(scene, "kill all", std::to_string(size) + span(time));
  for (int i = 0; i < size; ++i) scene.cluster.kill(i);
  pass(time);
  for (int i = 0; i < size; ++i) scene.cluster.start(i, false);
  scene.cluster.wait_synced();
}

// Only one server is left, and it cannot serve.
void lose_quorum(Scene& scene, const Draw& draw) {
  const int size = scene.cluster.size();
  const int left = draw.other ? scene.cluster.leader() : follower(scene, draw);
  // Sometimes longer than any session lasts.
  const auto time = kSession * (50 + draw.percent) / 100 * (draw.long_one ? 4 : 1);
  const Fault fault(scene, "quorum lost", std::to_string(left) + " is left" + span(time));
  for (int i = 0; i < size; ++i) {
    if (i != left) scene.cluster.kill(i);
  }
  require("no quorum", [&] { return !scene.cluster.serving(left); });
  pass(time);
  for (int i = 0; i < size; ++i) {
    if (i != left) scene.cluster.start(i, false);
  }
  scene.cluster.wait_synced();
}

// Deletes the data of one server, which then copies everything from the others. A server that has
// forgotten what it acknowledged may vote for less than was committed, so the others must be in
// step before it votes.
void wipe(Scene& scene, const Draw& draw) {
  const int server = draw.other ? scene.cluster.leader() : follower(scene, draw);
  const Fault fault(scene, draw.other ? "wipe leader" : "wipe follower", std::to_string(server));
  scene.cluster.rebuild(server);
}

// ---- the network between servers

void isolate(Scene& scene, const Draw& draw, int server, bool leads, const char* kind) {
  const Fault fault(scene, kind, std::to_string(server) + span(draw.time()));
  scene.cluster.isolate(server);
  pass(draw.time());
  if (leads && draw.long_one) scene.cluster.leader_after(server);
  scene.cluster.heal_all();
  scene.cluster.wait_synced();
}
void isolate_leader(Scene& s, const Draw& d) {
  isolate(s, d, s.cluster.leader(), true, "isolate leader");
}
void isolate_follower(Scene& s, const Draw& d) {
  isolate(s, d, follower(s, d), false, "isolate follower");
}

// The follower still reaches the third server.
void cut_from_leader(Scene& scene, const Draw& draw) {
  const int one = follower(scene, draw);
  const int leader = scene.cluster.leader();
  if (one == leader) return;  // the leader has changed meanwhile
  const Fault fault(scene, "cut from leader", std::to_string(one) + span(draw.time()));
  scene.cluster.link(leader, one).cut();
  pass(draw.time());
  scene.cluster.heal_all();
  scene.cluster.wait_synced();
}

void one_way(Scene& scene, const Draw& draw) {
  const int one = follower(scene, draw);
  const int leader = scene.cluster.leader();
  if (one == leader) return;
  const int from = draw.other ? leader : one;
  const Fault fault(scene, "one way link",
                    std::to_string(from) + " is not heard by " +
                        std::to_string(from == leader ? one : leader) + span(draw.time()));
  scene.cluster.link(leader, one).blackhole(from);
  pass(draw.time());
  scene.cluster.heal_all();
  scene.cluster.wait_synced();
}

void slow_link(Scene& scene, const Draw& draw) {
  const int one = follower(scene, draw);
  const int leader = scene.cluster.leader();
  if (one == leader) return;
  const auto delay = 20ms + std::chrono::milliseconds(2 * draw.percent);
  const Fault fault(
      scene, "slow link",
      std::to_string(one) + " by " + std::to_string(delay.count()) + " ms" + span(draw.time()));
  const auto link = scene.cluster.link(leader, one);
  link.delay(leader, delay);
  link.delay(one, delay);
  pass(draw.time());
  scene.cluster.heal_all();
  scene.cluster.wait_synced();
}

// ---- upkeep of etcd

EtcdUpkeep& upkeep(Scene& scene) { return dynamic_cast<EtcdUpkeep&>(scene.cluster); }

void compaction(Scene& scene, const Draw&) {
  const Fault fault(scene, "compaction", "200 ms" + span(2 * kSession));
  for (auto time = 0ms; time < 2 * kSession; time += 200ms) {
    upkeep(scene).compact();
    pass(200ms);
  }
}

void defragmentation(Scene& scene, const Draw&) {
  const Fault fault(scene, "defragmentation", std::to_string(scene.cluster.size()));
  for (int i = 0; i < scene.cluster.size(); ++i) upkeep(scene).defragment(i);
}

}  // namespace

std::vector<FaultKind> server_faults(const std::string& scheme) {
  std::vector<FaultKind> all{{"kill leader", kill_leader},
                             {"kill follower", kill_follower},
                             {"pause leader", pause_leader},
                             {"pause follower", pause_follower},
                             {"pause leader", pause_leader},
                             {"rolling restart", rolling_restart},
                             {"lose quorum", lose_quorum},
                             {"isolate leader", isolate_leader},
                             {"isolate follower", isolate_follower},
                             {"cut from leader", cut_from_leader},
                             {"one way", one_way},
                             {"slow link", slow_link},
                             {"kill all", kill_all}};
  if (scheme == "zk") all.push_back({"wipe server", wipe});
  if (scheme == "etcd")
    all.insert(all.end(), {{"compaction", compaction}, {"defragmentation", defragmentation}});
  return all;
}

}  // namespace baton::chaos
