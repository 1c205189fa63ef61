"""The kazoo side of the interop tests: one contender, driven by lines on stdin. contender.h says
what the lines mean. It can also look at the lock's directory and put other nodes into it.

    kazoo_contender.py WHO HOSTS PATH SESSION_MS
"""
import os
import queue
import random
import re
import sys
import threading
import time
import traceback

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout

DIGITS = 20  # of the counter, so that a write never changes its length
ENTRY = re.compile(r"(?:-lock-|__lock__)(-?\d{10})$")


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def say(what, more=""):
    print(what, now(), more, flush=True)


class Client(KazooClient):
    """Stamps when a create was answered: from then on the entry is in the queue."""

    joined = 0

    def create(self, *args, **kwargs):
        path = super().create(*args, **kwargs)
        self.joined = now()
        return path


class Contender:
    def __init__(self, who, hosts, path, session_ms):
        self.who = who
        self.path = path
        self.client = Client(hosts=hosts, timeout=session_ms / 1000)
        self.client.start(timeout=30)
        self.lock = self.client.Lock(path, identifier=who, extra_lock_patterns=["-lock-"])

    def czxid(self, name):
        stat = self.client.exists(self.path + "/" + name)
        return stat.czxid if stat else None

    def held(self):
        """TOKEN ENTRY of our hold; the token is the czxid, which all libraries share."""
        token = self.czxid(self.lock.node)
        if token is None:
            raise RuntimeError("granted, but %s does not exist" % self.lock.node)
        return "%d %s" % (token, self.lock.node)

    def turns(self, turns, counter_file, history_file, no_lock=None):
        counter = os.open(counter_file, os.O_RDWR)
        history = os.open(history_file, os.O_WRONLY | os.O_APPEND)
        for turn in range(1, int(turns) + 1):
            call = now()
            self.client.joined = 0
            if not no_lock and not self.lock.acquire():
                raise RuntimeError("acquire() without a timeout gave up")
            granted = now()
            held = "0 -" if no_lock else self.held()
            # Read and write in two steps, with a pause between: two at once lose an update.
            value = int(os.pread(counter, DIGITS, 0))
            time.sleep(random.random() / 1000)
            os.pwrite(counter, b"%0*d" % (DIGITS, value + 1), 0)
            line = "%s %d %d %d %d %d %s\n" % (
                self.who, turn, call, self.client.joined, granted, now(), held)
            os.write(history, line.encode())  # one write: lines stay whole
            if not no_lock:
                self.lock.release()
        say("DONE")

    def acquire(self, **how):
        try:
            granted = self.lock.acquire(**how)
        except LockTimeout:
            granted = False
        say("GRANTED" if granted else "REFUSED", self.held() if granted else "")

    def release(self):
        self.lock.release()
        say("RELEASED")

    def entries(self):
        """The queue in its order, as NAME:CZXID."""
        found = []
        if self.client.exists(self.path):
            for name in self.client.get_children(self.path):
                match = ENTRY.search(name)
                token = self.czxid(name) if match else None
                if token is not None:
                    found.append((int(match.group(1)), "%s:%d" % (name, token)))
        say("ENTRIES", " ".join(text for _, text in sorted(found)))

    def directory(self):
        say("THERE" if self.client.exists(self.path) else "GONE")

    def node(self, name):
        self.client.create(self.path + "/" + name, b"not an entry", makepath=True)
        say("MADE")

    def obey(self, command):
        words = command.split()
        if words[0] == "turns":
            self.turns(*words[1:])
        elif words[0] == "try":
            self.acquire(blocking=False)
        elif words[0] == "acquire":
            self.acquire(timeout=int(words[1]) / 1000)
        elif words[0] == "wait":
            self.acquire()
        elif words[0] == "release":
            self.release()
        elif words[0] == "entries":
            self.entries()
        elif words[0] == "directory":
            self.directory()
        elif words[0] == "node":
            self.node(words[1])
        else:
            raise ValueError("unknown command: " + command)


def read_commands(commands):
    # A thread of its own, so that the end of our parent is seen while we wait for the lock.
    for line in sys.stdin:
        commands.put(line.strip())
    os._exit(3)


def main():
    commands = queue.Queue()
    threading.Thread(target=read_commands, args=(commands,), daemon=True).start()
    try:
        who, hosts, path, session_ms = sys.argv[1:5]
        contender = Contender(who, hosts, path, int(session_ms))
        say("READY")
        for command in iter(commands.get, "quit"):
            contender.obey(command)
        contender.client.stop()
        contender.client.close()
    except Exception:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


main()
