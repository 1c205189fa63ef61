// Faults of client processes and of their links.
#include "chaos/cluster/nemesis.h"
#include "support/proxy.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::Direction;

enum class Role { holder, waiter, any };

Seat& seat_of(Scene& scene, const Draw& draw, Role role) {
  std::vector<Seat*> fit;
  const InLine* before = nullptr;
  const auto all = scene.observer.latest();
  for (const auto& entry : all) {
    const bool first = before == nullptr || before->lock != entry.lock;
    before = &entry;
    if (role == Role::any || entry.lock != draw.lock || first != (role == Role::holder)) continue;
    if (auto* seat = scene.crew.find(entry.client)) fit.push_back(seat);
  }
  auto& seats = scene.crew.seats();
  return fit.empty() ? seats[draw.pick % seats.size()] : *fit[draw.pick % fit.size()];
}

std::string name(const Seat& seat) { return std::to_string(seat.number); }
std::string span(std::chrono::milliseconds time) {
  return " for " + std::to_string(time.count()) + " ms";
}

// ---- processes

void kill(Scene& scene, const Draw& draw, Role role, const char* kind) {
  auto& seat = seat_of(scene, draw, role);
  const Fault fault(scene, kind, name(seat));
  scene.crew.kill(seat);
}
void kill_holder(Scene& s, const Draw& d) { kill(s, d, Role::holder, "kill holder"); }
void kill_waiter(Scene& s, const Draw& d) { kill(s, d, Role::waiter, "kill waiter"); }
void kill_client(Scene& s, const Draw& d) { kill(s, d, Role::any, "kill client"); }

void pause(Scene& scene, const Draw& draw, Role role, const char* kind) {
  auto& seat = seat_of(scene, draw, role);
  const Fault fault(scene, kind, name(seat) + span(draw.time()));
  scene.crew.pause(seat);
  pass(draw.time());
  scene.crew.resume(seat);
}
void pause_holder(Scene& s, const Draw& d) { pause(s, d, Role::holder, "pause holder"); }
void pause_waiter(Scene& s, const Draw& d) { pause(s, d, Role::waiter, "pause waiter"); }
void pause_client(Scene& s, const Draw& d) { pause(s, d, Role::any, "pause client"); }

// ---- links

Role role(const Draw& draw) { return draw.pick % 4 == 0 ? Role::any : Role::holder; }

void cut_link(Scene& scene, const Draw& draw) {
  auto& seat = seat_of(scene, draw, role(draw));
  const Fault fault(scene, "cut link", name(seat) + span(draw.time()));
  seat.proxy->cut();
  require("no connections", [&] { return seat.proxy->connections() == 0; });
  pass(draw.time());
  seat.proxy->heal();
}

void silence(Scene& scene, const Draw& draw, const char* kind, bool requests, bool answers) {
  auto& seat = seat_of(scene, draw, role(draw));
  const Fault fault(scene, kind, name(seat) + span(draw.time()));
  if (requests) seat.proxy->blackhole(Direction::kToServer);
  if (answers) seat.proxy->blackhole(Direction::kToClient);
  pass(draw.time());
  seat.proxy->heal();
}
void silent_link(Scene& s, const Draw& d) { silence(s, d, "silent link", true, true); }
void requests_vanish(Scene& s, const Draw& d) { silence(s, d, "requests vanish", true, false); }
void answers_vanish(Scene& s, const Draw& d) { silence(s, d, "answers vanish", false, true); }

// All bytes arrive in the end, long after they were sent.
void stalled_link(Scene& scene, const Draw& draw) {
  auto& seat = seat_of(scene, draw, role(draw));
  const auto direction = draw.other ? Direction::kToServer : Direction::kToClient;
  const Fault fault(scene, draw.other ? "requests stalled" : "answers stalled",
                    name(seat) + span(draw.time()));
  seat.proxy->stall(direction);
  pass(draw.time());
  seat.proxy->heal();
}

void late_answers(Scene& scene, const Draw& draw) {
  auto& seat = seat_of(scene, draw, role(draw));
  const auto delay = kSession * (5 + draw.percent) / 50;  // up to about twice the session timeout
  const Fault fault(
      scene, "late answers",
      name(seat) + " by " + std::to_string(delay.count()) + " ms" + span(2 * kSession));
  seat.proxy->delay(Direction::kToClient, delay);
  pass(2 * kSession);
  seat.proxy->heal();
}

// Forwards a few bytes every 10 ms: messages arrive late and in pieces.
void dripping_link(Scene& scene, const Draw& draw) {
  constexpr auto kEvery = 10ms;
  auto& seat = seat_of(scene, draw, role(draw));
  const auto bytes = static_cast<std::size_t>(1 + draw.percent / 20);
  std::vector<Direction> directions{draw.other ? Direction::kToServer : Direction::kToClient};
  if (draw.percent % 3 == 0) directions = {Direction::kToServer, Direction::kToClient};
  const char* kind = directions.size() == 2 ? "link drips"
                     : draw.other           ? "requests drip"
                                            : "answers drip";
  const Fault fault(
      scene, kind,
      name(seat) + " " + std::to_string(bytes) + " bytes every 10 ms" + span(draw.time()));
  const auto kept_back = [&] {
    std::uint64_t sum = 0;
    for (const auto direction : directions) sum += seat.proxy->drips(direction);
    return sum;
  };
  const auto before = kept_back();
  for (const auto direction : directions) seat.proxy->drip(direction, bytes, kEvery);
  // Without a quorum there may be no bytes for a while.
  require(
      "bytes that are kept back", [&] { return kept_back() > before; }, 40s);
  pass(draw.time());
  seat.proxy->heal();
}

void reset_link(Scene& scene, const Draw& draw) {
  auto& seat = seat_of(scene, draw, role(draw));
  const Fault fault(scene, "reset link", name(seat));
  for (int i = 0; i < 1 + draw.percent / 20; ++i) {
    const auto before = seat.proxy->accepted();
    seat.proxy->reset_connections();
    require("it has come back", [&] { return seat.proxy->accepted() > before; });
  }
}

// Loses one message: a request, or an answer to a request that the server has executed.
void lost_message(Scene& scene, const Draw& draw) {
  auto& seat = seat_of(scene, draw, role(draw));
  const auto direction = draw.other ? Direction::kToServer : Direction::kToClient;
  const Fault fault(scene, draw.other ? "lost request" : "lost answer", name(seat));
  const int n = 1 + draw.percent / 10;
  if (scene.cluster.scheme() == "zk") {
    seat.proxy->cut_at_frame(direction, n, false, test::zk_requests);
  } else {
    seat.proxy->cut_at_grpc(direction, n, false);
  }
  // Without a quorum there may be no messages for a while.
  const bool happened = seat.proxy->wait_cut(direction, 40s);
  seat.proxy->heal();
  if (!happened) throw std::runtime_error("no message to be lost in forty seconds");
}

// ---- the machine

void no_processor(Scene& scene, const Draw& draw) {
  constexpr int kThreads = 8;
  const auto time = 1s + std::chrono::milliseconds(10 * draw.percent);
  const Fault fault(scene, "no processor", std::to_string(kThreads) + " busy threads" + span(time));
  std::vector<std::chrono::nanoseconds> used(kThreads);
  {
    std::vector<std::jthread> busy;
    for (auto& mine : used) {
      busy.emplace_back([&mine](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
        }
        timespec t{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        mine = std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
      });
    }
    pass(time);
  }
  std::chrono::nanoseconds sum{};
  for (const auto mine : used) sum += mine;
  if (sum < time / 20) throw std::runtime_error("busy threads that were not busy");
}

void wall_clock(Scene& scene, const Draw& draw) {
  std::vector<Seat*> fit;
  for (auto& seat : scene.crew.seats()) {
    if (!seat.clock_file.empty()) fit.push_back(&seat);
  }
  if (fit.empty()) return;
  auto& seat = *fit[draw.pick % fit.size()];
  const auto ahead = std::chrono::seconds(draw.other ? 3'600 : -3'600);
  const Fault fault(scene, "wall clock",
                    name(seat) + " by " + std::to_string(ahead.count()) + " s");
  scene.crew.set_clock(seat, ahead);
  pass(draw.time());
  scene.crew.set_clock(seat, 0s);
}

void pause_holder_long(Scene& s, const Draw& d) {
  Draw draw = d;
  draw.long_one = true;
  // The pause must begin during a hold. Holds of these controls are much longer than the time here.
  require("somebody holds the lock", [&] {
    const auto line = s.observer.latest();
    return std::any_of(line.begin(), line.end(), [&](const auto& e) { return e.lock == d.lock; });
  });
  pass(std::chrono::milliseconds(300));
  pause_holder(s, draw);
}

}  // namespace

std::vector<FaultKind> control_faults() { return {{"pause holder long", pause_holder_long}}; }

std::vector<FaultKind> client_faults() {
  return {{"kill holder", kill_holder},
          {"kill waiter", kill_waiter},
          {"kill client", kill_client},
          {"pause holder", pause_holder},
          {"pause holder", pause_holder},
          {"pause waiter", pause_waiter},
          {"pause client", pause_client},
          {"cut link", cut_link},
          {"silent link", silent_link},
          {"requests vanish", requests_vanish},
          {"answers vanish", answers_vanish},
          {"stalled link", stalled_link},
          {"late answers", late_answers},
          {"reset link", reset_link},
          {"drip", dripping_link},
          {"lost message", lost_message},
          {"lost message", lost_message},
          {"no processor", no_processor},
          {"wall clock", wall_clock}};
}

}  // namespace baton::chaos
