#include "chaos/cluster/controls.h"

#include "support/boot_clock.h"

#include <algorithm>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::boot_now;

}  // namespace

Missing missing_in(const std::string& control) {
  Missing missing;
  if (control == "believe") {
    missing.valid = true;
  } else if (control == "own-tokens") {
    missing.token = true;
  } else if (control == "jump") {
    missing.queue = true;
  } else if (control == "hoard") {
    missing.release = true;
  } else if (control == "leak") {
    missing.closing = true;
  } else if (control == "revive") {
    missing.finality = true;
  } else if (control == "no-token-check") {
    missing.check = true;
  } else if (control == "litter") {
    missing.tidiness = true;
  } else if (!control.empty()) {
    throw std::invalid_argument("no such control: " + control);
  }
  return missing;
}

void jump_the_queue(Client& client, const std::string& name, const HistoryWriter& history,
                    std::uint64_t op, std::uint32_t lock, std::chrono::milliseconds time,
                    const std::stop_token& stop) {
  Record record;
  record.op = op;
  record.lock = lock;
  const auto write = [&](Kind kind) {
    record.kind = kind;
    record.at = boot_now();
    record.until = kind == Kind::valid ? record.at + 1s : 0ns;
    history.write(record);
  };
  // Entries that exist before the join belong to others.
  std::set<std::uint64_t> others;
  for (const Entry& entry : client.inspect(name).entries) others.insert(entry.token);
  std::stop_source cancel;
  auto promise = std::make_shared<std::promise<Result<Lock>>>();
  auto answer = promise->get_future();
  auto mutex = client.mutex(name);
  mutex.acquire_async({.timeout = {}, .stop = cancel.get_token()},
                      [promise](Result<Lock> result) { promise->set_value(std::move(result)); });
  const auto end = boot_now() + 2s;
  while (record.token == 0 && boot_now() < end && !stop.stop_requested()) {
    for (const Entry& entry : client.inspect(name).entries) {
      if (!others.contains(entry.token)) record.token = entry.token;
    }
  }
  if (record.token != 0) {
    write(Kind::granted);
    for (const auto until = boot_now() + std::max<std::chrono::nanoseconds>(time, 100ms);
         boot_now() < until; std::this_thread::sleep_for(10ms)) {
      write(Kind::valid);
    }
    write(Kind::release);
  } else {
    record.value = static_cast<std::uint64_t>(Errc::timeout);
    write(Kind::gave_up);
  }
  cancel.request_stop();
  answer.wait();
}

Litter::Litter(const std::string& url, const std::string& name)
    : client_(Client::connect(url)), lock_(client_.mutex(name).acquire({.timeout = 20s})) {
  client_.mutex(name).acquire_async({}, [](const Result<Lock>&) {});
  const auto end = boot_now() + 20s;
  while (client_.inspect(name).entries.size() < 2) {
    if (boot_now() > end) throw std::runtime_error("nobody waits");
    std::this_thread::sleep_for(10ms);
  }
}

void forget_a_client(const std::string& url) {
  ClientOptions options;
  options.session_timeout = 2s;
  static std::mutex mutex;
  static std::vector<Client>& forgotten = *new std::vector<Client>;
  auto client = Client::try_connect(url, options);
  const std::lock_guard guard(mutex);
  if (client) forgotten.push_back(std::move(client).value());
}

}  // namespace baton::chaos
