#include "memory/backend.h"

#include "common/base/fork_guard.h"
#include "common/base/mutex.h"
#include "common/base/thread_loop.h"
#include "memory/named_stores.h"
#include "memory/session.h"

#include <atomic>
#include <map>
#include <utility>

namespace baton::memory {

namespace {

struct NamedStores {
  Mutex mutex;
  std::map<std::string, std::weak_ptr<NamedStore>> stores BATON_GUARDED_BY(mutex);
};

class Backend final : public internal::Backend, private TimeListener {
 public:
  Backend(const std::string& name, std::shared_ptr<NamedStore> named, const BackendOptions& options)
      : name_(name),
        options_(options),
        named_(std::move(named)),
        loop_(*named_->clock,
              [log = options.log](std::string_view text) { log(LogLevel::error, text); }),
        transport_(named_->make_transport(loop_)) {
    named_->clock->add_listener(this);
  }
  ~Backend() override { stop(); }

  Loop& loop() noexcept override { return loop_; }
  std::string where() const override { return "memory:" + name_; }

  void open(SessionListener& listener, Answer<std::unique_ptr<internal::Session>> answer) override {
    Session::open({named_->store, transport_, &loop_, named_->clock.get(), options_.label, name_,
                   options_.session_timeout},
                  listener, std::move(answer));
  }

  void stop() noexcept override {
    named_->clock->remove_listener(this);
    loop_.stop();
  }

 private:
  Time next_due() override { return loop_.next_timer(); }
  void time_moved() override { loop_.settle(); }

  const std::string name_;
  const BackendOptions options_;
  const std::shared_ptr<NamedStore> named_;
  ThreadLoop loop_;
  const std::shared_ptr<Transport> transport_;
};

}  // namespace

std::uint64_t first_token() {
  static std::atomic<std::uint64_t> next{0};
  return next.fetch_add(std::uint64_t{1} << 36, std::memory_order_relaxed);
}

std::shared_ptr<NamedStore> find_named_store(const std::string& name) {
  auto& r = per_process<NamedStores>();  // a forked child starts with no stores
  const MutexLock guard(r.mutex);
  std::erase_if(r.stores, [](const auto& entry) { return entry.second.expired(); });
  if (auto named = r.stores[name].lock()) return named;
  auto named = std::make_shared<NamedStore>();
  named->store = std::make_shared<Store>(false, first_token());
  named->clock = std::shared_ptr<const Clock>(std::shared_ptr<void>(), &real_clock());
  named->make_transport = [](Loop& loop) { return std::make_shared<DirectTransport>(loop); };
  r.stores[name] = named;
  return named;
}

bool add_named_store(const std::string& name, const std::shared_ptr<NamedStore>& named) {
  auto& r = per_process<NamedStores>();  // a forked child starts with no stores
  const MutexLock guard(r.mutex);
  if (!r.stores[name].expired()) return false;
  r.stores[name] = named;
  return true;
}

Result<std::unique_ptr<internal::Backend>> make_backend(const std::string& name,
                                                        const BackendOptions& options) {
  return std::unique_ptr<internal::Backend>(
      std::make_unique<Backend>(name, find_named_store(name), options));
}

}  // namespace baton::memory
