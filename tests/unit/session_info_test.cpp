// Client::session() returns the state of the session, or throws an error if the client is busy.
#include <baton/baton.h>

#include "common/client/client_impl.h"
#include "support/temp_dir.h"
#include "file/backend.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <semaphore>
#include <thread>

namespace baton::internal {
namespace {

using namespace std::chrono_literals;

TEST(SessionInfoOf, ABusyClientIsAnErrorAndNotAClosedSession) {
  const test::TempDir directory;
  ClientOptions options;
  auto log = std::make_shared<LogQueue>(options.log);
  BackendOptions checked = check_options(options).value();
  checked.log = log_to(log);
  const auto client =
      ClientImpl::open(file::make_backend(directory / "store", checked).value(), options, log)
          .value();
  EXPECT_GE(client->info().liveness_fd, 0);

  std::binary_semaphore inside(0);
  std::binary_semaphore go_on(0);
  std::thread busy([&] {
    (void)client->ask<Done>("block", 30s, [&](Engine&, Answer<Done> answer) {
      inside.release();
      (void)go_on.try_acquire_for(30s);
      answer(Done{});
    });
  });
  inside.acquire();
  try {
    const SessionInfo info = client->info();
    ADD_FAILURE() << "said \"" << info.backend << "\", descriptor " << info.liveness_fd;
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::timeout) << error.what();
    EXPECT_NE(std::string(error.what()).find(directory.path()), std::string::npos) << error.what();
  }
  go_on.release();
  busy.join();
  EXPECT_GE(client->info().liveness_fd, 0) << "it answers again";
  client->close();
  EXPECT_EQ(client->info().state, SessionState::closed);
}

}  // namespace
}  // namespace baton::internal
