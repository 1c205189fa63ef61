// Short calls on a client with a crowd of waiters whose connection to ZooKeeper is cut.
#include "chaos/short_calls.h"
#include "support/zk_server.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;

TEST(ZkShortCalls, ReturnInTimeWhileFiveThousandWaitersComeBack) {
  if (!test::zk_installed()) throw std::runtime_error("no ZooKeeper server here");
  constexpr auto kSession = 6s;
  test::ZkEnsemble server;
  test::Proxy proxy(server.client_port(0));
  ClientOptions options;
  options.session_timeout = kSession;
  options.connect_timeout = test::kLong;  // also limits inspect()
  options.log = [](LogLevel, std::string_view) {};
  auto crowd = Client::connect("zk://" + proxy.host() + "/short", options);
  auto observer = Client::connect("zk://" + server.hosts() + "/short", options);
  short_calls_in_a_cut_crowd(crowd, observer, proxy, [&] {
    const auto ephemerals = server.number(0, "zk_ephemerals_count");
    return static_cast<std::size_t>(std::max<std::int64_t>(ephemerals, 0));
  });
}

}  // namespace
}  // namespace baton::chaos
