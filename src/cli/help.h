// Examples and details below the options of each --help.
#pragma once

namespace baton::cli {

constexpr char kMainHelp[] = R"(
Examples:
  baton run nightly/backup -- /usr/local/bin/backup --all
  baton show nightly/backup
  baton --url etcd://db1:2379,db2:2379/app ls

The store is --url, or BATON_URL, or the directory ${XDG_STATE_HOME:-~/.local/state}/baton
(root: /var/lib/baton), which serves the processes of this machine. ?token_base=N at the end of a
URL adds N to every token, for a move from another store; doctor prints it.
TIME is 30s, 500ms, 2m, 1h or 1.5s; digits alone are seconds.
Exit codes: 64 usage, 69 store unreachable, 77 permission denied; run has more of its own.
)";

constexpr char kRunHelp[] = R"(
Usage: baton run NAME [OPTIONS] -- CMD [ARGS...]

Examples:
  baton run nightly/backup -- /usr/local/bin/backup --all
  baton run deploy --timeout 5m --label "$USER" -- ./deploy.sh
  baton run -n reindex -- sh -c 'reindex --fence "$BATON_TOKEN"'

CMD runs in a process group of its own, with BATON_LOCK and BATON_TOKEN in its environment.
INT, TERM, HUP, QUIT, USR1, USR2 and WINCH are passed on. If the lock is in danger, the group gets
TERM one grace (at most a third of the session timeout) before the lock's deadline, and KILL before
it. If baton itself is killed, a guardian process ends the group first; the lock is free after.
If the guardian is killed, baton ends the group and exits with 76. Processes that leave the group
(setsid) are not followed. A run of the same lock inside CMD is refused: it would wait for itself.

What is left: if baton and its guardian are both killed (kill -9), the kernel kills CMD, unless CMD
is a setuid program, but not what CMD has started. On file:// those processes keep the lock until
the last of them has ended: each inherits a descriptor (number 100 or above), and one that closes it
does not count. On zk:// and etcd:// the lock is free when the session timeout is over, also if one
of the two is killed and the other one stopped: then only BATON_TOKEN protects what CMD writes to.

Exit code: that of CMD; 128+n when signal n ended it; 75 the lock was not had in time; 76 it was
lost; 126 CMD cannot be run; 127 CMD was not found; 128+n baton got signal n while it waited.
)";

constexpr char kLsHelp[] = R"(
Examples:
  baton ls
  baton ls billing/
  baton ls --json | jq -r '.[]'
)";

constexpr char kShowHelp[] = R"(
Examples:
  baton show billing/invoices
  baton show billing/invoices --json | jq '.entries[0].label'

The entry marked with * holds the lock, the others wait in this order.
)";

constexpr char kWatchHelp[] = R"(
Examples:
  baton watch billing/invoices
  baton watch billing/invoices --json | while read -r state; do ...; done

Redraws on a terminal until Ctrl-C; elsewhere it prints a line for every change it sees.
)";

constexpr char kEvictHelp[] = R"(
Examples:
  baton show billing/invoices              # prints the ids
  baton evict billing/invoices 7f3a-lock-12
  baton evict --yes billing/invoices 7f3a-lock-12

An evicted holder is told within a second if it is connected; until then only its token protects
what the lock protects. An evicted waiter joins again at the end. Exit code 1: no such entry.
)";

constexpr char kDoctorHelp[] = R"(
Examples:
  baton doctor
  baton --url etcd://db1:2379 doctor --json

Takes and releases a lock of its own, baton-doctor/HOST-PID, to measure the round trip.
)";

}  // namespace baton::cli
