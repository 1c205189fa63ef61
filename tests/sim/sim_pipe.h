// One connection: in order, both ways. What is under way may outlive who sent it. A task may refer
// to its pipe, which is there while it runs; were it to own it, a pipe with messages would never
// go.
#pragma once

#include "sim_loop.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <utility>

namespace baton::sim {

class SimPipe : public std::enable_shared_from_this<SimPipe> {
 public:
  SimPipe(World& world, const Weather& weather) : world_(world), weather_(weather) {}
  virtual ~SimPipe() = default;

  void up(Task task) { put(up_, std::move(task)); }
  void down(Task task) { put(down_, std::move(task)); }
  void forget_up() { up_.queue.clear(); }
  void forget_down() { down_.queue.clear(); }
  bool dropped = false;  // the client has left it

 private:
  struct Way {
    std::deque<std::pair<Time, Task>> queue;
    bool polling = false;
  };

  void put(Way& way, Task task) {
    Time due = world_.now() + delay_in(world_, weather_);
    if (!way.queue.empty()) due = std::max(due, way.queue.back().first);
    way.queue.emplace_back(due, std::move(task));
    world_.at(due, [self = shared_from_this(), &way] { self->pump(way); });
  }
  void pump(Way& way) {
    const auto self = shared_from_this();
    while (!way.queue.empty() && way.queue.front().first <= world_.now()) {
      if (&way == &up_ ? !weather_.up : !weather_.down) {
        // It waits, and all behind it; now and then it is sent again.
        if (std::exchange(way.polling, true)) return;
        world_.after(std::chrono::milliseconds(25), [self, &way] {
          way.polling = false;
          self->pump(way);
        });
        return;
      }
      Task task = std::move(way.queue.front().second);
      way.queue.pop_front();
      task();
    }
  }

  World& world_;
  const Weather& weather_;
  Way up_;
  Way down_;
};

}  // namespace baton::sim
