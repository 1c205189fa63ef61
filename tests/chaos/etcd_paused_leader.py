#!/usr/bin/env python3
"""Shows etcd#15247 without baton: a leader that was stopped revokes leases that are alive.

Starts three etcd servers on loopback. Each round grants 40 leases, renews them all the time at servers that run, stops
the leader for 2 to 8 s, resumes it, and counts the leases that the new leader has lost though they were renewed less
than TTL - 0.5 s before. docs/stores/etcd.md tells what was seen. Not part of "make test": it shows what servers do.

Usage: tests/chaos/etcd_paused_leader.py [ETCD_BINARY [ROUNDS]]
"""

import json
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

SERVERS, LEASES, TTL = 3, 40, 3


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Cluster:
    def __init__(self, binary, directory):
        self.clients, peers = free_ports(SERVERS), free_ports(SERVERS)
        url = "http://127.0.0.1:{}".format
        members = ",".join(f"n{i}={url(peers[i])}" for i in range(SERVERS))
        self.running = [True] * SERVERS
        self.processes = []
        for i in range(SERVERS):
            log = open(f"{directory}/n{i}.log", "w")
            self.processes.append(subprocess.Popen(
                [binary, f"--name=n{i}", f"--data-dir={directory}/n{i}", "--log-level=debug", "--logger=zap",
                 f"--listen-client-urls={url(self.clients[i])}", f"--advertise-client-urls={url(self.clients[i])}",
                 f"--listen-peer-urls={url(peers[i])}", f"--initial-advertise-peer-urls={url(peers[i])}",
                 f"--initial-cluster={members}"], stdout=log, stderr=log))

    def ask(self, i, path, body, timeout=2):
        request = urllib.request.Request(f"http://127.0.0.1:{self.clients[i]}{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.loads(answer.readline())

    def leader(self):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            for i in (i for i in range(SERVERS) if self.running[i]):
                try:
                    status = self.ask(i, "/v3/maintenance/status", {}, 1)
                    if status.get("leader") == status["header"]["member_id"]:
                        return i
                except OSError:
                    pass
            time.sleep(0.05)
        raise RuntimeError("the servers have no leader")

    def leases(self, i):
        return {lease["ID"] for lease in self.ask(i, "/v3/lease/leases", {}).get("leases", [])}

    def stop(self, i):
        self.running[i] = False
        self.processes[i].send_signal(signal.SIGSTOP)

    def resume(self, i):
        self.processes[i].send_signal(signal.SIGCONT)

    def close(self):
        for process in self.processes:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes:
            process.wait()


def keep_alive(cluster, leases, renewed, done):
    while not done.is_set():
        for lease in leases:
            sent = time.monotonic()
            server = random.choice([i for i in range(SERVERS) if cluster.running[i]])
            try:
                answer = cluster.ask(server, "/v3/lease/keepalive", {"ID": lease}, 1)
                if int(answer["result"].get("TTL", 0)) > 0:
                    renewed[lease] = sent
            except (OSError, KeyError):
                pass
        done.wait(TTL / 6)


def run_round(cluster):
    old = cluster.leader()
    leases = [cluster.ask(old, "/v3/lease/grant", {"TTL": TTL})["ID"] for _ in range(LEASES)]
    renewed = dict.fromkeys(leases, time.monotonic())
    done = threading.Event()
    keepers = [threading.Thread(target=keep_alive, args=(cluster, leases[k::8], renewed, done)) for k in range(8)]
    for keeper in keepers:
        keeper.start()
    try:
        time.sleep(1)
        cluster.stop(old)
        pause = random.uniform(2.2, 8)
        time.sleep(pause)
        new = cluster.leader()
        alive = cluster.leases(new) & set(leases)
        cluster.resume(old)
        resumed, early = time.monotonic(), {}
        while time.monotonic() < resumed + 9:
            asked = time.monotonic()
            for lease in alive - cluster.leases(new):
                if asked - renewed[lease] < TTL - 0.5:
                    early.setdefault(lease, asked - resumed)
            time.sleep(0.02)
        cluster.running[old] = True
    finally:
        done.set()
        for keeper in keepers:
            keeper.join()
    first = f", the first {min(early.values()) * 1000:.0f} ms after the leader resumed" if early else ""
    print(f"pause of {pause:.1f} s: {len(early)} of {len(alive)} live leases revoked{first}", flush=True)
    return bool(early)


def main():
    binary = sys.argv[1] if len(sys.argv) > 1 else "etcd"
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    directory = tempfile.mkdtemp(prefix="etcd-paused-leader-")
    cluster = Cluster(binary, directory)
    try:
        hits = sum(run_round(cluster) for _ in range(rounds))
    finally:
        cluster.close()
    print(f"{hits} of {rounds} pauses revoked leases that were alive; the servers' logs are in {directory}")


if __name__ == "__main__":
    main()
