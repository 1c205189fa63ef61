// SilentServerProbe finds servers that accept connections and stay silent.
#include "zk/silent_server_probe.h"

#include "common/base/thread_loop.h"
#include "common/base/unique_fd.h"
#include "support/boot_clock.h"
#include "support/ports.h"
#include "support/proxy.h"

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace baton::zk {
namespace {

using namespace std::chrono_literals;
using Indexes = std::set<std::size_t>;

class ZkScoutTest : public ::testing::Test {
 protected:
  ZkScoutTest() {
    silent_.blackhole(test::Direction::kToServer);
    silent_.blackhole(test::Direction::kToClient);
  }
  Endpoint refuses() const { return {"127.0.0.1", nothing_.port()}; }
  Endpoint hangs_up() const { return {"127.0.0.1", hangs_up_.port()}; }
  Endpoint silent() const { return {"127.0.0.1", silent_.port()}; }

  test::PortLease nothing_;
  test::Proxy hangs_up_{nothing_.port()};
  test::Proxy silent_{hangs_up_.port()};
};

TEST_F(ZkScoutTest, FindsThoseThatAcceptAndStaySilent) {
  EXPECT_EQ(find_silent_servers({refuses(), silent(), hangs_up(), silent()}, 500ms).silent,
            (Indexes{1, 3}));
}

// A server that closes the connection without data has not answered: it may be dead behind its
// proxy.
TEST_F(ZkScoutTest, TellsAnAnswerFromARefusal) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener.get(), raw, size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), raw, &size), 0);
  const auto answers = std::async(std::launch::async, [&listener] {
    const UniqueFd fd(::accept(listener.get(), nullptr, nullptr));
    return ::send(fd.get(), "x", 1, MSG_NOSIGNAL);
  });
  const Endpoint loud{"127.0.0.1", ntohs(address.sin_port)};
  const auto found = find_silent_servers({refuses(), loud, hangs_up(), silent()}, 500ms);
  EXPECT_EQ(found.answered, Indexes{1});
  EXPECT_EQ(found.silent, Indexes{3});
}

TEST_F(ZkScoutTest, DoesNotWaitWhenNoneIsSilent) {
  const test::Stopwatch watch;
  EXPECT_EQ(find_silent_servers({refuses(), hangs_up()}, 60s).silent, Indexes{});
  EXPECT_LT(watch.elapsed(), 30s);
}

TEST_F(ZkScoutTest, TellsOnTheStrand) {
  ThreadLoop loop(real_clock(), [](std::string_view) {});
  std::promise<Indexes> told;
  std::unique_ptr<SilentServerProbe> scout;
  loop.post([&] {
    scout = std::make_unique<SilentServerProbe>(
        loop, std::vector{silent(), hangs_up()}, 300ms,
        [&](const ProbeResult& found) { told.set_value(found.silent); });
  });
  auto future = told.get_future();
  ASSERT_EQ(future.wait_for(30s), std::future_status::ready);
  EXPECT_EQ(future.get(), Indexes{0});
  loop.stop();
  scout.reset();
}

// The probe is destroyed before it reports. Its thread ends by itself.
TEST_F(ZkScoutTest, TellsNothingAfterItsEnd) {
  ThreadLoop loop(real_clock(), [](std::string_view) {});
  bool told = false;
  std::promise<void> done;
  loop.post([&] {
    {
      const SilentServerProbe scout(loop, {silent(), hangs_up()}, 50ms,
                                    [&](const ProbeResult&) { told = true; });
    }
    // A second probe reports later on the same loop.
    auto second = std::make_shared<std::unique_ptr<SilentServerProbe>>();
    *second = std::make_unique<SilentServerProbe>(loop, std::vector{silent(), hangs_up()}, 500ms,
                                                  [&](const ProbeResult&) { done.set_value(); });
    loop.at(loop.now() + 60s, [second] {});
  });
  ASSERT_EQ(done.get_future().wait_for(30s), std::future_status::ready);
  loop.stop();
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace baton::zk
