// A program outside the tree: uses what README shows, and nothing but the installed headers.
#include <baton/baton.h>
#include <baton/testing.h>

#include <cstdio>

int main() {
  auto client = baton::Client::connect("memory:consumer");
  auto mutex = client.mutex("orders/7");
  auto lock = mutex.acquire({.timeout = std::chrono::seconds(5)});
  const bool exclusive = !mutex.try_acquire().has_value();
  const bool good = lock.valid() && lock.token() != 0 && exclusive;
  lock.release();
  baton::testing::MemoryStore store("consumer-broken");
  std::printf("baton %s token %llu\n", BATON_VERSION_STRING,
              static_cast<unsigned long long>(lock.token()));
  return good && baton::is_valid_name("a/b") ? 0 : 1;
}
