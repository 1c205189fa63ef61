// The texts that each --help prints below the options: examples and details.
#pragma once

namespace baton::cli {

constexpr char kMainHelp[] = R"(
Examples:
  baton run nightly/backup -- /usr/local/bin/backup --all
  baton show nightly/backup
  baton --url etcd://db1:2379,db2:2379/app ls

The store is --url, else BATON_URL, else the directory ${XDG_STATE_HOME:-~/.local/state}/baton
(root: /var/lib/baton), which serves the processes of this machine. ?token_base=N at the end of a
URL adds N to every token, for a move from another store; doctor prints it.
TIME is 30s, 500ms, 2m, 1h or 1.5s; a number without a unit is seconds.
Exit codes: 64 usage, 69 store unreachable, 77 permission denied; baton run --help lists more.
)";

constexpr char kRunHelp[] = R"(
Usage: baton run NAME [OPTIONS] -- CMD [ARGS...]

Examples:
  baton run nightly/backup -- /usr/local/bin/backup --all
  baton run deploy --timeout 5m --label "$USER" -- ./deploy.sh
  baton run -n reindex -- sh -c 'reindex --fence "$BATON_TOKEN"'

CMD runs in its own process group, with BATON_LOCK and BATON_TOKEN in its environment. baton sends
INT, TERM, HUP, QUIT, USR1, USR2 and WINCH on to this group. If the store does not answer and the
lock may be lost, the group gets TERM one grace before the deadline of the lock, and KILL before the
deadline. The grace is at most a third of the session timeout.
If baton itself is killed, a guardian process ends the group before the lock becomes free.
If the guardian is killed, baton ends the group and exits with 76. Processes that leave the group
(setsid) are not ended. A run of the same lock inside CMD is refused: it would wait for itself.

If baton and its guardian are both killed (kill -9), the kernel kills CMD, unless CMD is a setuid
program. It does not kill the processes that CMD has started. On file:// these processes keep the
lock until the last of them has ended: each inherits a descriptor (number 100 or above). A process
that closes this descriptor does not keep the lock. On zk:// and etcd:// the lock is free when the
session timeout is over. The same is true if one of the two is killed and the other one is stopped.
Then only BATON_TOKEN protects the data that CMD writes.

Exit code: that of CMD; 128+n if signal n ended CMD; 75 timed out waiting for the lock; 76 the lock
was lost; 126 CMD cannot be run; 127 CMD was not found; 128+n if signal n ended baton while it
waited.
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

The entry marked with * holds the lock. The other entries wait, in this order.
)";

constexpr char kWatchHelp[] = R"(
Examples:
  baton watch billing/invoices
  baton watch billing/invoices --json | while read -r state; do ...; done

On a terminal it redraws until Ctrl-C. Otherwise it prints a line for every change that it sees.
)";

constexpr char kEvictHelp[] = R"(
Examples:
  baton show billing/invoices              # prints the ids
  baton evict billing/invoices 7f3a-lock-12
  baton evict --yes billing/invoices 7f3a-lock-12

A connected holder learns of its eviction within a second. Until then only its token protects the
data. An evicted waiter joins again at the end of the queue.
Exit code 1: there is no such entry, or you did not confirm.
)";

constexpr char kDoctorHelp[] = R"(
Examples:
  baton doctor
  baton --url etcd://db1:2379 doctor --json

Acquires and releases a separate lock, baton-doctor/HOST-PID, to measure the round trip.
)";

}  // namespace baton::cli
