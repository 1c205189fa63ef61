// watch: shows a lock live. It polls, because baton reports events only to clients in the queue.
#include <sys/ioctl.h>

#include <baton/baton.h>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "commands.h"
#include "errors.h"
#include "fd.h"
#include "json.h"
#include "store.h"
#include "text.h"

namespace baton::cli {

namespace {

using std::chrono::system_clock;

constexpr std::chrono::milliseconds kEmbedded{200};
constexpr std::chrono::milliseconds kServer{500};

bool same(const LockSnapshot& a, const LockSnapshot& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    if (a.entries[i].id != b.entries[i].id) return false;
  }
  return true;
}

std::string line_of(const LockSnapshot& snapshot) {
  std::string out = format_utc(system_clock::now()) + " " + snapshot.name;
  if (snapshot.entries.empty()) return out + " is free\n";
  const Entry& holder = snapshot.entries.front();
  return out + " is held by " + escape_controls(holder.label) + ", token " +
         std::to_string(holder.token) + ", " + std::to_string(snapshot.entries.size() - 1) +
         " waiting\n";
}

// A signal handler that writes to a Bell, not a signalfd: SIGINT may reach any thread of the
// client.
int g_interrupt_fd = -1;

void on_interrupt(const Bell& bell) {
  g_interrupt_fd = bell.fd();
  struct sigaction action {};
  action.sa_handler = [](int) {
    const int saved = errno;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = write(g_interrupt_fd, &one, sizeof one);
    errno = saved;
  };
  sigaction(SIGINT, &action, nullptr);
}

// Whether watch retries after this error. All other errors end the command, because waiting does
// not help.
bool passes(Errc code) {
  return code == Errc::timeout || code == Errc::connection_failed ||
         code == Errc::session_expired || code == Errc::store_error;
}

class Watch {
 public:
  explicit Watch(const Args& args)
      : args_(args), redraw_(!args.json && isatty(STDOUT_FILENO) != 0) {}

  void show(const LockSnapshot& snapshot) {
    if (outage_ && !redraw_) say("watch: the store answers again");
    outage_ = false;
    if (redraw_) {
      draw(describe(snapshot, system_clock::now()));  // ages change even when the queue does not
    } else if (!last_ || !same(*last_, snapshot)) {
      print(args_.json ? dump(to_json(snapshot)) + "\n" : line_of(snapshot));
    }
    last_ = snapshot;
  }

  void outage(const Error& error) {
    const std::string text = std::string(error.what()) + "; retrying";
    if (redraw_) {
      draw("baton: " + escape_controls(text) + "\n\n" +
           (last_ ? describe(*last_, system_clock::now()) : std::string()));
    } else if (!outage_) {
      say("watch: " + text);
    }
    outage_ = true;
  }

 private:
  // Overwrites the screen line by line and clears the rest of each line and of the screen, because
  // clearing it first would flicker. Prints only as many lines as fit, without wrapping, because
  // the screen must not scroll.
  void draw(const std::string& text) {
    winsize size{};
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1;
    std::size_t left = known ? size.ws_row - 1U : SIZE_MAX;  // the cursor needs the last row
    std::string out = std::string(drawn_ ? "\x1b[H" : "\x1b[2J\x1b[H") + "\x1b[?7l";
    drawn_ = true;
    for (const char c : text) {
      if (c != '\n') {
        out += c;
        continue;
      }
      out += "\x1b[K\r\n";
      if (--left == 0) break;
    }
    print(out + "\x1b[J\x1b[?7h");
  }

  const Args& args_;
  const bool redraw_;
  bool drawn_ = false;
  bool outage_ = false;
  std::optional<LockSnapshot> last_;
};

}  // namespace

int watch_command(const Args& args) {
  Client client = connect(args);
  const std::string backend = client.session().backend;
  const auto period = backend == "zk" || backend == "etcd" ? kServer : kEmbedded;

  const Bell interrupted;
  on_interrupt(interrupted);

  Watch watch(args);
  for (;;) {
    try {
      watch.show(client.inspect(args.name));
    } catch (const Error& error) {
      if (!passes(error.errc())) throw;
      watch.outage(error);
    }
    pollfd fds[] = {{interrupted.fd(), POLLIN, 0}, {STDOUT_FILENO, 0, 0}};
    poll(fds, 2, static_cast<int>(period.count()));
    if (fds[0].revents != 0) {
      return isatty(STDOUT_FILENO) != 0 ? static_cast<int>(kOk) : kSignalBase + SIGINT;
    }
    if ((fds[1].revents & (POLLERR | POLLNVAL)) != 0) return kOk;  // the reader of stdout is gone
  }
}

}  // namespace baton::cli
