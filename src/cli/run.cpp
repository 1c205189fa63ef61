// run: runs a command while it holds a lock. This file starts the guardian, connects and waits for
// the lock. runner.cpp does the rest, while CMD runs.
#include <baton/baton.h>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "commands.h"
#include "errors.h"
#include "fd.h"
#include "guardian.h"
#include "held.h"
#include "runner.h"
#include "signals.h"
#include "store.h"
#include "terminal.h"
#include "text.h"

namespace baton::cli {

namespace {

// Returns the first signal that asks baton to end; 0: none. Ctrl-Z stops baton like any program.
int read_signals(const SignalReader& signals) {
  int asked = 0;
  while (const int signal = signals.next()) {
    if (asks_to_end(signal) && asked == 0) asked = signal;
    if (signal == SIGTSTP) stop_self();
  }
  return asked;
}

std::string interrupted(const std::string& name, int signal, const char* doing) {
  return "run: received " + signal_name(signal) + " while " + doing + " \"" + name +
         "\"; nothing was run and no entry is left";
}

// Connects on another thread, so that Ctrl-C ends the wait for a store that does not answer.
Client connect_while_listening(const std::string& url, const Args& args,
                               const SignalReader& signals, Guardian& guardian) {
  const Bell connected;
  std::optional<Result<Client>> result;
  std::thread connecting([&] {
    result.emplace(Client::try_connect(url, client_options(args)));
    connected.ring();
  });
  for (;;) {
    pollfd fds[] = {{connected.fd(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    poll(fds, 2, -1);
    if (fds[0].revents != 0) break;
    if (const int signal = read_signals(signals)) {
      say(interrupted(args.name, signal, "connecting to the store for"));
      guardian.dismiss();
      _exit(kSignalBase + signal);  // the thread cannot be stopped, and no ticket exists yet
    }
  }
  connecting.join();
  return std::move(*result).value();
}

// A nested run would wait without end for its own ancestor. BATON_HELD alone does not prove that
// the run is nested: a process that CMD left behind keeps the variable after the lock was released.
// So the token in BATON_HELD must be that of the current holder.
void refuse_nested(Client& client, const JobSpec& spec) {
  const auto tokens = held_tokens(spec.lock, spec.store);
  if (tokens.empty()) return;
  const LockSnapshot snapshot = client.inspect(spec.lock);
  if (snapshot.entries.empty()) return;
  const std::uint64_t token = snapshot.entries.front().token;
  if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) return;
  throw Failure(kUsage, "run: \"" + spec.lock + "\" is already held by the baton run around this " +
                            "one (token " + std::to_string(token) +
                            "); a nested run of the same lock would wait for itself");
}

struct Wait {
  Bell bell;
  std::mutex mutex;
  std::optional<Result<Lock>> result;
};

// Throws Failure or Error if it does not get the lock.
Lock wait_for_lock(Client& client, const Args& args, const SignalReader& signals,
                   const Guardian& guardian) {
  const auto wait = std::make_shared<Wait>();
  std::stop_source stop;
  client.mutex(args.name).acquire_async({args.timeout, stop.get_token()},
                                        [wait](Result<Lock> result) {
                                          {
                                            const std::lock_guard guard(wait->mutex);
                                            wait->result.emplace(std::move(result));
                                          }
                                          wait->bell.ring();
                                        });

  int signal = 0;
  bool unguarded = false;
  for (;;) {
    pollfd fds[] = {{wait->bell.fd(), POLLIN, 0},
                    {signals.fd(), POLLIN, 0},
                    {unguarded ? -1 : guardian.link.fd(), POLLIN, 0}};
    poll(fds, 3, -1);
    // The guardian sends no message before CMD is started, so an event means that it has ended.
    if (fds[2].revents != 0) unguarded = true;
    const int asked = read_signals(signals);
    if (signal == 0) signal = asked;
    if (unguarded || signal != 0) stop.request_stop();
    if (fds[0].revents != 0) break;
  }

  const std::lock_guard guard(wait->mutex);
  Result<Lock>& result = *wait->result;
  if (signal != 0) {
    throw Failure(kSignalBase + signal, interrupted(args.name, signal, "waiting for"));
  }
  if (unguarded) throw Failure(kOsError, "run: the guardian process was killed; nothing was run");
  if (!result && result.error().errc() == Errc::timeout) {
    throw Failure(kNotInTime, result.error().what());
  }
  return std::move(result).value();
}

}  // namespace

int run_command(const Args& args) {
  const SignalState start = SignalState::save();  // restored for CMD
  signal(SIGPIPE, SIG_IGN);                       // a closed stderr must not end baton
  const Terminal terminal;
  const std::string url = store_url(args);
  const JobSpec spec{args.job, args.name, store_identity(url)};
  Guardian guardian = start_guardian(spec, start, terminal);  // before the first thread
  const SignalReader signals(start);

  Client client = connect_while_listening(url, args, signals, guardian);
  refuse_nested(client, spec);
  Lock lock = wait_for_lock(client, args, signals, guardian);
  return Runner(args, client, std::move(lock), std::move(guardian), signals, terminal).run();
}

}  // namespace baton::cli
