// `baton run` with a client that is too busy to tell which descriptor keeps its lock. Without that
// descriptor the guardian cannot keep the lock while it ends the command of a killed baton.
#include <baton/baton.h>

#include <gtest/gtest.h>

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "errors.h"
#include "guardian.h"
#include "runner.h"
#include "signals.h"
#include "support/fixture.h"
#include "terminal.h"

namespace {

// The file store calls getdents64() to list a directory, and nothing else in this process does. The
// function below replaces it, and blocks while the disk is "slow".
std::atomic<bool> disk_is_slow{false};
std::atomic<bool> waits_for_disk{false};

}  // namespace

extern "C" __attribute__((visibility("default"))) ssize_t getdents64(int fd, void* buffer,
                                                                     size_t size) noexcept {
  while (disk_is_slow.load()) {
    waits_for_disk.store(true);
    usleep(1'000);
  }
  return syscall(SYS_getdents64, fd, buffer, size);
}

namespace baton::cli::test {
namespace {

class BusyClient : public CliTest {
 protected:
  // Acquires the lock, makes the disk slow, and then does the rest of `baton run`.
  int run_with_slow_disk(const Args& args) const {
    const SignalState start = SignalState::save();
    const Terminal terminal;
    const JobSpec spec{args.job, args.name, "store"};
    Guardian guardian = start_guardian(spec, start, terminal);
    const SignalReader signals(start);
    Client client = Client::connect(url());
    Lock lock = client.mutex(args.name).acquire();
    disk_is_slow.store(true);
    std::thread lister([&] {
      try {
        (void)client.list();
      } catch (const Error&) {
      }
    });
    int code = 98;
    if (eventually([] { return waits_for_disk.load(); })) {
      try {
        code = Runner(args, client, std::move(lock), std::move(guardian), signals, terminal).run();
      } catch (const Failure& failure) {
        say(failure.what());
        code = failure.exit_code();
      }
    }
    disk_is_slow.store(false);
    lister.join();
    return code;
  }
};

TEST_F(BusyClient, StartsNoCommandWithoutTheDescriptorThatKeepsTheLock) {
  Args args;
  args.command = Command::run;
  args.name = "x";
  args.job = {"touch", directory() + "/ran"};
  EXPECT_EQ(in_child([&] { return run_with_slow_disk(args); }), kUnavailable);
  EXPECT_FALSE(std::filesystem::exists(directory() + "/ran"));
  EXPECT_TRUE(show("x")["entries"].empty());
}

}  // namespace
}  // namespace baton::cli::test
