#include "memory/backend.h"

#include "common/base/fork_guard.h"
#include "common/base/thread_loop.h"
#include "memory/registry.h"
#include "memory/session.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

namespace baton::internal {

namespace {

struct MemoryPlaces {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<MemoryPlace>> places;
};

std::uint64_t next_client() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

class MemoryBackend final : public Backend, private TimeListener {
 public:
  MemoryBackend(const std::string& name, std::shared_ptr<MemoryPlace> place,
                const BackendOptions& options)
      : name_(name),
        options_(options),
        client_(next_client()),
        place_(std::move(place)),
        loop_(*place_->clock,
              [log = options.log](std::string_view text) { log(LogLevel::error, text); }),
        wire_(place_->make_wire(loop_)) {
    place_->clock->add_listener(this);
  }
  ~MemoryBackend() override { stop(); }

  Loop& loop() noexcept override { return loop_; }
  std::string where() const override { return "memory:" + name_; }

  void open(SessionListener& listener, Answer<std::unique_ptr<Session>> answer) override {
    MemorySession::open({place_->store, wire_, &loop_, place_->clock.get(), client_, options_.label,
                         name_, options_.session_timeout},
                        listener, std::move(answer));
  }

  void stop() noexcept override {
    place_->clock->remove_listener(this);
    loop_.stop();
  }

 private:
  Time next_due() override { return loop_.next_timer(); }
  void time_moved() override { loop_.settle(); }

  const std::string name_;
  const BackendOptions options_;
  const std::uint64_t client_;
  const std::shared_ptr<MemoryPlace> place_;
  ThreadLoop loop_;
  const std::shared_ptr<Wire> wire_;
};

}  // namespace

std::uint64_t first_memory_token() {
  static std::atomic<std::uint64_t> next{0};
  return next.fetch_add(std::uint64_t{1} << 36, std::memory_order_relaxed);
}

std::shared_ptr<MemoryPlace> find_memory_place(const std::string& name) {
  auto& r = per_process<MemoryPlaces>();  // a fork begins with none
  const std::lock_guard guard(r.mutex);
  std::erase_if(r.places, [](const auto& entry) { return entry.second.expired(); });
  if (auto place = r.places[name].lock()) return place;
  auto place = std::make_shared<MemoryPlace>();
  place->store = std::make_shared<MemoryStore>(false, first_memory_token());
  place->clock = std::shared_ptr<const Clock>(std::shared_ptr<void>(), &real_clock());
  place->make_wire = [](Loop& loop) { return std::make_shared<DirectWire>(loop); };
  r.places[name] = place;
  return place;
}

bool add_memory_place(const std::string& name, const std::shared_ptr<MemoryPlace>& place) {
  auto& r = per_process<MemoryPlaces>();  // a fork begins with none
  const std::lock_guard guard(r.mutex);
  if (!r.places[name].expired()) return false;
  r.places[name] = place;
  return true;
}

Result<std::unique_ptr<Backend>> make_memory_backend(const std::string& name,
                                                     const BackendOptions& options) {
  return std::unique_ptr<Backend>(
      std::make_unique<MemoryBackend>(name, find_memory_place(name), options));
}

}  // namespace baton::internal
