// A program that sets only some fields of an options struct gets no warning about the others.
// compiles without a warning
#include <baton/baton.h>

#include <chrono>
#include <string_view>

using namespace std::chrono_literals;

baton::ClientOptions client_options() {
  return baton::ClientOptions{.log = [](baton::LogLevel, std::string_view) {}};
}

void every_struct(baton::DistributedMutex& mutex) {
  const baton::ClientOptions first{.session_timeout = 10s};
  const baton::ClientOptions label{.label = "worker"};
  const baton::ClientOptions nested{.tls = {.ca_file = "ca.pem"},
                                    .credentials = {.user = "baton", .password_env = "SECRET"},
                                    .zookeeper = {.plaintext_auth = true}};
  const baton::TlsOptions tls{.key_file = "key.pem"};
  const baton::Credentials credentials{.password_file = "password"};
  const baton::ZooKeeperOptions zookeeper{.read_group = "world:anyone"};
  const baton::MetricEvent event{.lock = "orders/7"};
  const baton::AcquireOptions acquire{.stop = {}};
  auto client = baton::Client::connect("memory:", {.log = [](auto, auto) {}});
  auto lock = mutex.acquire({.timeout = 1s});
  auto other = mutex.try_acquire({1s});
  (void)first, (void)label, (void)nested, (void)tls, (void)credentials, (void)zookeeper;
  (void)event, (void)acquire, (void)client;
}
