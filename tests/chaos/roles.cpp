#include "chaos/roles.h"

#include "support/boot_clock.h"

#include <baton/baton.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <thread>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;

constexpr const char* kLock = "chaos/kill";
constexpr auto kPatience = 30s;  // a longer wait means that the waiter was forgotten
constexpr unsigned kHoldMicros = 1000;

std::int64_t now() { return test::boot_now().count(); }

// Keeps the lock for a while, and writes stamps that prove that the holder still runs.
void stay(Hold& hold, std::chrono::nanoseconds length, bool busy) {
  const std::int64_t until = now() + length.count();
  for (std::int64_t at = now(); at < until; at = now()) {
    hold.seen = at;
    if (!busy) std::this_thread::sleep_for(50us);
  }
}

}  // namespace

void work(Ledger& ledger, std::uint32_t serial, const std::string& url) {
  std::optional<Client> client;
  std::optional<DistributedMutex> mutex;
  if (!url.empty()) {
    client.emplace(Client::connect(url));
    mutex.emplace(client->mutex(kLock));
  }
  std::minstd_rand random(serial);
  while (!ledger.stop()) {
    const std::int64_t asked = now();
    Lock lock;
    if (mutex) lock = mutex->acquire({.timeout = kPatience});
    const std::int64_t begin = now();
    Hold& hold = ledger.new_hold();
    hold.worker = serial;
    hold.token = mutex ? lock.token() : ledger.next_fake_token();
    hold.asked = asked;
    hold.seen = begin;
    hold.begin = begin;
    ledger.inside() = serial;
    stay(hold, std::chrono::microseconds(random() % kHoldMicros), random() % 2 == 0);
    std::uint32_t me = serial;
    ledger.inside().compare_exchange_strong(me, 0);
    hold.end = now();
    if (mutex) lock.release();
  }
}

void observe(Ledger& ledger, const std::string& url) {
  auto client = Client::connect(url);
  std::uint64_t last = 0;
  while (!ledger.stop()) {
    const LockSnapshot snapshot = client.inspect(kLock);
    const std::int64_t at = now();
    for (std::size_t i = 1; i < snapshot.entries.size(); ++i) {
      const std::uint64_t token = snapshot.entries[i].token;
      if (token > last) ledger.add_sighting({token, at});
    }
    if (!snapshot.entries.empty()) last = std::max(last, snapshot.entries.back().token);
    std::this_thread::sleep_for(2ms);
  }
}

}  // namespace baton::chaos
