#include <baton/testing.h>

#include <baton/error.h>

#include "common/base/fork_guard.h"
#include "common/base/mutex.h"
#include "common/seam/lock_name.h"
#include "common/seam/url.h"
#include "memory/named_stores.h"
#include "memory/virtual_clock.h"

#include <deque>
#include <mutex>
#include <utility>

namespace baton::testing {

using internal::Loop;
using internal::Mutex;
using internal::MutexLock;
using internal::Nanos;
using internal::Task;
using internal::Time;
using memory::NamedStore;
using memory::TimeListener;
using memory::Traffic;
using memory::Transport;
using memory::VirtualClock;

namespace {

// The faults to inject next. All transports of a store share them.
struct Faults {
  struct Next {
    bool drop = false;
    Nanos delay{};
  };
  Mutex mutex;
  bool down BATON_GUARDED_BY(mutex) = false;
  std::deque<Next> next BATON_GUARDED_BY(mutex);
};

class FaultyTransport final : public Transport {
 public:
  FaultyTransport(Loop& loop, std::shared_ptr<Faults> faults)
      : loop_(loop), faults_(std::move(faults)) {}

  void request(Traffic, Task at_store) override {
    {
      const MutexLock guard(faults_->mutex);
      if (faults_->down) return;
    }
    at_store();
  }
  void answer(Traffic kind, Task at_client) override {
    Faults::Next fault;
    {
      const MutexLock guard(faults_->mutex);
      if (faults_->down) return;
      if (kind != Traffic::heartbeat && kind != Traffic::open && !faults_->next.empty()) {
        fault = faults_->next.front();
        faults_->next.pop_front();
      }
    }
    if (fault.drop) return;
    if (fault.delay > Nanos(0)) {
      loop_.at(loop_.now() + fault.delay, std::move(at_client));
    } else {
      loop_.defer(std::move(at_client));
    }
  }
  void news(Task at_client) override {
    {
      const MutexLock guard(faults_->mutex);
      if (faults_->down) return;
    }
    loop_.post(std::move(at_client));
  }
  bool lossy() const noexcept override { return true; }

 private:
  Loop& loop_;
  const std::shared_ptr<Faults> faults_;
};

}  // namespace

class MemoryStore::Impl final : public TimeListener {
 public:
  explicit Impl(std::string_view name)
      : faults(std::make_shared<Faults>()),
        clock(std::make_shared<VirtualClock>()),
        named(std::make_shared<NamedStore>()) {
    const auto url = internal::parse_url("memory:" + std::string(name));
    if (!url) throw url.error();
    if (url->token_base != 0) {
      throw Error(Errc::invalid_argument,
                  "testing::MemoryStore: give the token base to the clients, in their URL");
    }
    named->store = std::make_shared<memory::Store>(true, memory::first_token());
    named->clock = clock;
    named->make_transport = [f = faults](Loop& loop) {
      return std::make_shared<FaultyTransport>(loop, f);
    };
    if (!memory::add_named_store(url->memory_name, named)) {
      throw Error(Errc::invalid_argument,
                  "testing::MemoryStore: \"memory:" + url->memory_name + "\" is in use already");
    }
    start = clock->now();
    clock->add_listener(this);
  }
  ~Impl() override { clock->remove_listener(this); }

  Time next_due() override { return named->store->next_expiry(); }
  void time_moved() override { named->store->expire(clock->now()); }

  const std::shared_ptr<Faults> faults;
  const std::shared_ptr<VirtualClock> clock;
  const std::shared_ptr<NamedStore> named;
  const std::uint64_t generation = internal::fork_generation();
  Time start;
  std::recursive_mutex advancing;
};

MemoryStore::MemoryStore(std::string_view name) : impl_(std::make_unique<Impl>(name)) {}
MemoryStore::~MemoryStore() {
  // In a forked child the mutexes may be locked, so nothing may be destroyed there. Leak it.
  if (impl_->generation != internal::fork_generation()) static_cast<void>(impl_.release());
}

void MemoryStore::advance(std::chrono::milliseconds by) {
  if (by.count() < 0) throw Error(Errc::invalid_argument, "advance: time does not go back");
  // One call at a time, so that each moves the clock by its full amount. The mutex is recursive,
  // because a listener may call advance(), too.
  const std::lock_guard guard(impl_->advancing);
  impl_->clock->advance_to(internal::saturating_add_ms(impl_->clock->now(), by));
}

std::chrono::milliseconds MemoryStore::now() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(impl_->clock->now() - impl_->start);
}

void MemoryStore::expire_sessions() {
  impl_->named->store->expire_all();
  impl_->clock->settle();
}

void MemoryStore::disconnect() {
  Faults& faults = *impl_->faults;
  const MutexLock guard(faults.mutex);
  faults.down = true;
}

void MemoryStore::reconnect() {
  Faults& faults = *impl_->faults;
  const MutexLock guard(faults.mutex);
  faults.down = false;
}

void MemoryStore::drop_next_answer() {
  Faults& faults = *impl_->faults;
  const MutexLock guard(faults.mutex);
  faults.next.push_back({true, {}});
}

void MemoryStore::delay_next_answer(std::chrono::milliseconds by) {
  if (by.count() < 0) throw Error(Errc::invalid_argument, "delay_next_answer: negative delay");
  Faults& faults = *impl_->faults;
  const MutexLock guard(faults.mutex);
  faults.next.push_back({false, by});
}

bool MemoryStore::remove_entry(std::string_view lock, std::string_view entry_id) {
  const auto name = internal::parse_lock_name(lock).value();
  const bool removed = impl_->named->store->evict(name, entry_id);
  impl_->clock->settle();
  return removed;
}

bool MemoryStore::remove_holder(std::string_view lock) {
  const auto name = internal::parse_lock_name(lock).value();
  const auto snapshot = impl_->named->store->inspect(name);
  return !snapshot.entries.empty() && remove_entry(lock, snapshot.entries.front().id);
}

std::size_t MemoryStore::entries(std::string_view lock) const {
  return impl_->named->store->entries(std::string(lock));
}

std::size_t MemoryStore::sessions() const { return impl_->named->store->sessions(); }

}  // namespace baton::testing
