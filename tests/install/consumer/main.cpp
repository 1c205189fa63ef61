// A program outside the source tree. It checks that the calls shown in README.md work with only the
// installed headers.
#include <baton/baton.h>
#include <baton/etcd_channel.h>
#include <baton/testing.h>

#include <cstdio>

// A program can pass a channel on without any header of gRPC.
bool a_null_channel_is_refused() {
  const std::shared_ptr<grpc::Channel> none;
  const auto client = baton::Client::try_connect(baton::EtcdChannel(none, "/app"));
  return !client && (client.error().errc() == baton::Errc::invalid_argument ||
                     client.error().errc() == baton::Errc::unsupported);
}

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
  return good && baton::is_valid_name("a/b") && a_null_channel_is_refused() ? 0 : 1;
}
