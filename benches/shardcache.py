#!/usr/bin/env python3
"""The example `shardcache` beside redis-server, both driven by redis-benchmark, in turns.

    cargo build --release --example shardcache
    benches/shardcache.py [--rounds 3] [--only pinned|free] [--quick]

First with the server on one core and the client on the other, then both free on two cores. Prints a table in Markdown:
medians of the rounds, shardcache first and redis-server behind the colon, in thousand requests a second, CPU seconds of
the server for a million requests, and the 99th percentile of the client's latency in ms. Keys are drawn from 100,000.
Needs redis-server, redis-benchmark and redis-cli, two cores, and Linux.
"""

import argparse
import csv
import os
import socket
import statistics
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(HERE, "..", "target"))
SHARDCACHE = os.path.join(TARGET, "release", "examples", "shardcache")
TESTS = ["set", "get"]
# Requests of one measurement, by depth of the pipeline: two or three seconds each.
REQUESTS = {1: 150_000, 16: 1_000_000, 64: 2_000_000}


def free_port():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


class Server:
    """A server on a port of its own, on the given cores."""

    def __init__(self, name, cores):
        self.port = free_port()
        commands = {
            "shardcache": [SHARDCACHE, "--port", self.port, "--shards", 4, "--threads", len(cores)],
            "redis-server": ["redis-server", "--port", self.port, "--save", "", "--appendonly", "no"],
        }
        pin = ["taskset", "--cpu-list", ",".join(map(str, cores))]
        command = pin + [str(word) for word in commands[name]]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(1000):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.01)
        raise RuntimeError(f"{name} does not serve")

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        subprocess.run(["redis-cli", "-p", str(self.port), "shutdown", "nosave"], capture_output=True, check=False)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise RuntimeError("a server does not end") from None


def measure(server, test, depth, clients, size, client_cores, requests):
    """Thousand requests a second, CPU seconds a million, 99th percentile in ms."""
    words = ["-p", server.port, "-t", test, "-P", depth, "-c", clients, "-d", size, "-n", requests, "-r", 100_000]
    pin = ["taskset", "--cpu-list", ",".join(map(str, client_cores))]
    before = server.cpu_seconds()
    done = subprocess.run(
        pin + ["redis-benchmark", "--csv"] + [str(word) for word in words], capture_output=True, text=True, check=True
    )
    cpu = server.cpu_seconds() - before
    rows = list(csv.DictReader(line for line in done.stdout.splitlines() if line.startswith('"')))
    if len(rows) != 1:
        raise RuntimeError(f"redis-benchmark says: {done.stdout}{done.stderr}")
    return float(rows[0]["rps"]) / 1e3, cpu * 1e6 / requests, float(rows[0]["p99_latency_ms"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["pinned", "free"])
    parser.add_argument("--quick", action="store_true", help="a tenth of the requests")
    options = parser.parse_args()
    first, second = sorted(os.sched_getaffinity(0))[:2]
    placements = {"pinned": ([first], [second]), "free": ([first, second], [first, second])}
    names = ["shardcache", "redis-server"]
    for placement, (server_cores, client_cores) in placements.items():
        if options.only not in (None, placement):
            continue
        cases = [(d, c, s) for s in (16, 1024) for c in (50, 500) for d in (1, 16, 64)]
        found = {(case, test, name): [] for case in cases for test in TESTS for name in names}
        for number in range(options.rounds):
            for case in cases:
                depth, clients, size = case
                for name in names if number % 2 == 0 else reversed(names):
                    server = Server(name, server_cores)
                    requests = REQUESTS[depth] // (10 if options.quick else 1)
                    for test in TESTS:
                        result = measure(server, test, depth, clients, size, client_cores, requests)
                        found[case, test, name].append(result)
                    server.end()
        print(f"\n{placement}, {options.rounds} rounds\n")
        print("| value | clients | `-P` | | 1,000 requests/s | CPU s for a million | p99, ms |\n|--:|--:|--:|---|--:|--:|--:|")
        for case in cases:
            depth, clients, size = case
            for test in TESTS:
                def median(name, column):
                    return statistics.median(result[column] for result in found[case, test, name])

                ours, theirs = names
                rate = f"{median(ours, 0):.0f} : {median(theirs, 0):.0f}, {median(ours, 0) / median(theirs, 0):.2f}×"
                cpu = f"{median(ours, 1):.2f} : {median(theirs, 1):.2f}"
                late = f"{median(ours, 2):.2f} : {median(theirs, 2):.2f}"
                print(f"| {size} | {clients} | {depth} | {test.upper()} | {rate} | {cpu} | {late} |", flush=True)


if __name__ == "__main__":
    main()
