// One connection, which delivers messages in order in both directions. A message under way may live
// longer than its sender. A task may hold a plain reference to its pipe, because the pipe exists
// while the task runs. A task must not own its pipe: a pipe with messages would then never be
// deleted.
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
  bool dropped = false;  // the client has closed its end

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
        // The message waits, with all messages behind it. It is tried again every 25 ms.
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
