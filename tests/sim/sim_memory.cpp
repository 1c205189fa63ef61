// The memory store in a simulation, with a transport that loses, delays and doubles messages.
#include "bugs.h"
#include "memory/session.h"
#include "memory/store.h"
#include "memory/transport.h"
#include "sim_store.h"

#include <algorithm>
#include <map>
#include <utility>

namespace baton::sim {

namespace {

using namespace std::chrono_literals;

class SimWire final : public memory::Transport {
 public:
  SimWire(World& world, PortParts parts, std::function<void()> store_touched)
      : world_(world), parts_(std::move(parts)), store_touched_(std::move(store_touched)) {}

  void request(memory::Traffic kind, Task at_store) override {
    // The process is paused here, and the answer to the heartbeat waits while the deadline passes.
    const Weather& weather = *parts_.weather;
    if (kind == memory::Traffic::heartbeat && world_.chance(weather.stop_after_beat)) {
      parts_.on_beat();
    }
    if (!weather.up || world_.chance(weather.lose_request)) return;
    auto shared = std::make_shared<Task>(std::move(at_store));
    const auto carry = [this, shared](Time when) {
      // The request is carried out even if the client has crashed, because it was under way.
      world_.at(when, [shared, touched = store_touched_] {
        (*shared)();
        touched();
      });
    };
    Time when = world_.now() + delay_in(world_, weather);
    if (!world_.chance(weather.reorder)) when = std::max(when, last_request_);
    last_request_ = std::max(when, last_request_);
    carry(when);
    if (world_.chance(weather.twice)) carry(when + delay_in(world_, weather));
  }
  void answer(memory::Traffic, Task at_client) override {
    if (world_.chance(parts_.weather->lose_answer)) return;
    to_client(std::move(at_client));
  }
  void news(Task at_client) override {
    if (world_.chance(parts_.weather->lose_news)) return;
    to_client(std::move(at_client));
  }
  bool lossy() const noexcept override { return true; }

 private:
  void to_client(Task task) {
    const Weather& weather = *parts_.weather;
    if (!parts_.life->alive || !weather.down) return;
    Time when = world_.now() + delay_in(world_, weather);
    if (!world_.chance(weather.reorder)) when = std::max(when, last_answer_);
    last_answer_ = std::max(when, last_answer_);
    world_.at(when, [loop = parts_.loop, life = parts_.life, task = std::move(task)]() mutable {
      if (life->alive) loop->arrive(std::move(task));
    });
  }

  World& world_;
  const PortParts parts_;
  std::function<void()> store_touched_;
  Time last_request_{};
  Time last_answer_{};
};

class MemoryPort final : public SimPort {
 public:
  MemoryPort(World& world, const PortParts& parts, std::shared_ptr<memory::Store> store,
             const internal::Clock& clock, std::chrono::milliseconds timeout,
             std::function<void()> store_touched)
      : loop_(parts.loop),
        number_(parts.number),
        store_(std::move(store)),
        clock_(clock),
        timeout_(timeout),
        wire_(std::make_shared<SimWire>(world, parts, std::move(store_touched))) {}
  void open(internal::SessionListener& listener,
            internal::Answer<std::unique_ptr<internal::Session>> answer) override {
    memory::Session::open(
        {store_, wire_, loop_.get(), &clock_, "c" + std::to_string(number_), "sim", timeout_, true},
        listener, std::move(answer));
  }

 private:
  std::shared_ptr<SimLoop> loop_;
  const int number_;
  std::shared_ptr<memory::Store> store_;
  const internal::Clock& clock_;
  const std::chrono::milliseconds timeout_;
  std::shared_ptr<SimWire> wire_;
};

class MemorySimStore final : public SimStore {
 public:
  explicit MemorySimStore(StoreParts parts)
      : world_(parts.world),
        timeout_(parts.timeout),
        clock_(world_, any_rate(world_)),
        store_(std::make_shared<memory::Store>(true)) {}

  std::unique_ptr<SimPort> connect(PortParts parts) override {
    return std::make_unique<MemoryPort>(world_, parts, store_, clock_, timeout_,
                                        [this] { schedule_expiry(); });
  }
  std::uint64_t front(const internal::LockName& lock) const override {
    return token_by_position(lock, store_->front_token(lock));
  }
  std::vector<SimEntry> entries(const internal::LockName& lock) const override {
    std::vector<SimEntry> all;
    for (const auto& entry : store_->inspect(lock).entries) {
      all.push_back({entry.id, token_by_position(lock, entry.token), std::stoull(entry.id)});
    }
    return all;
  }
  void evict(const internal::LockName& lock, const SimEntry& entry) override {
    store_->evict(lock, entry.id);
  }
  void end_session(std::uint64_t session) override {
    store_->end_session(memory::SessionId{session});
  }
  std::uint64_t token_by_position(const internal::LockName& lock,
                                  std::uint64_t token) const override {
    if (!seeded(Bug::token_is_position) || token == 0) return token;
    const auto [position, fresh] = positions_.try_emplace(token, 1);
    if (!fresh) return position->second;
    for (const auto& entry : store_->inspect(lock).entries) {
      if (entry.token < token) ++position->second;
    }
    return position->second;
  }
  std::string left_over(std::size_t clients) const override {
    for (const auto& name : store_->list("")) return "an entry is left in " + name;
    if (store_->watches() != 0) return "a watch is left";
    return store_->sessions() > clients ? "a session is left" : "";
  }

 private:
  void schedule_expiry() {
    const Time due = store_->next_expiry();
    if (due == internal::kNever) return;
    // At least 10 us later, because world_time() may be early by some microseconds.
    const Time when = std::max(clock_.world_time(due), world_.now() + 10us);
    if (when >= expiry_scheduled_) return;
    expiry_scheduled_ = when;
    world_.at(when, [this, when] {
      if (expiry_scheduled_ == when) expiry_scheduled_ = internal::kNever;
      store_->expire(clock_.now());
      schedule_expiry();
    });
  }

  World& world_;
  const std::chrono::milliseconds timeout_;
  SimClock clock_;
  std::shared_ptr<memory::Store> store_;
  Time expiry_scheduled_ = internal::kNever;
  mutable std::map<std::uint64_t, std::uint64_t> positions_;  // by token
};

}  // namespace

std::unique_ptr<SimStore> make_memory_store(StoreParts parts) {
  return std::make_unique<MemorySimStore>(std::move(parts));
}

}  // namespace baton::sim
