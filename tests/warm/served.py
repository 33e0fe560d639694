#!/usr/bin/env python3
"""What the warm program (server.c) answers is what the program answers, and what it cannot serve is
run by the program itself.

    tests/warm/served.py [--build build]

The last line is `N passed, N failed`."""

import argparse
import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODELS = os.path.join(ROOT, "models", "gpt2-2l")
SIDES = [os.path.join(MODELS, side) for side in ("hf-sdpa", "vllm")]
BROKEN = [SIDES[0], os.path.join(MODELS, "vllm-bug-posoff")]


class Server:
    """A server, and the programs that are compared."""

    def __init__(self, build, folder):
        self.plain = os.path.join(build, "isomer")
        self.client = os.path.join(build, "tests", "warm", "isomer")
        self.socket = os.path.join(folder, "socket")
        self.environment = dict(os.environ, ISOMER_WARM=self.socket)
        preload = os.path.join(build, "tests", "warm", "server.so")
        self.process = subprocess.Popen(
            [self.plain],
            stdin=subprocess.PIPE,
            env=dict(self.environment, LD_PRELOAD=preload, ISOMER_WARM_LISTEN=self.socket),
        )
        while not os.path.exists(self.socket):
            assert self.process.poll() is None, "the server ended"
            time.sleep(0.01)

    def children(self):
        at = "/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)
        with open(at, encoding="utf-8") as f:
            return f.read().split()

    def run(self, program, words, **options):
        options.setdefault("env", self.environment)
        p = subprocess.run([program, *words], capture_output=True, timeout=120, **options)
        return p.returncode, p.stdout, p.stderr

    def end(self):
        self.process.stdin.close()
        return self.process.wait(timeout=60)


def without_seconds(path):
    with open(path, encoding="utf-8") as f:
        report = json.load(f)
    for key in ("seconds", "peak_rss_bytes", "slowest_rule"):
        report["stats"].pop(key)
    return report


def the_same_answers(s, folder):
    for words in (
        ["compare", *SIDES],
        ["compare", *BROKEN, "--seed", "3"],
        ["compare", SIDES[0], os.path.join(folder, "none")],
        ["show", SIDES[0]],
        ["--version"],
        [],
    ):
        assert s.run(s.plain, words) == s.run(s.client, words), words


def the_same_report_where_it_was_asked_for(s, folder):
    reports = []
    for k, program in enumerate((s.plain, s.client)):
        where = os.path.join(folder, str(k))
        os.mkdir(where)
        words = ["compare", *SIDES, "--json", "report.json", "--certificate", "certificate.json"]
        assert s.run(program, words, cwd=where)[0] == 0
        reports.append(without_seconds(os.path.join(where, "report.json")))
        with open(os.path.join(where, "certificate.json"), "rb") as f:
            reports[-1]["certificate"] = f.read()
    assert reports[0] == reports[1]


def what_it_cannot_serve_the_program_does(s, folder):
    """Libraries elsewhere, and memory that libtorch does not fit in: refused, so that the answer is
    the program's."""
    other = dict(s.environment, ISOMER_SHIM_DIR=folder)
    words = ["compare", *SIDES]
    status, _, said = s.run(s.client, words, env=other)
    assert status == 2 and b"libisomer_shim.so" in said, said
    for size in (64 << 20, 200 << 20):
        few = {"preexec_fn": lambda n=size: resource.setrlimit(resource.RLIMIT_AS, (n, n))}
        assert s.run(s.client, words, **few) == s.run(s.plain, words, **few)
    none = dict(s.environment, ISOMER_WARM=os.path.join(folder, "nothing"))
    assert s.run(s.client, words, env=none) == s.run(s.plain, words)


def limits_of_time_hold(s, folder):
    """A child has the client's limit of processor time, and its end by a signal is the client's."""
    few = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_CPU, (0, 0))}
    assert s.run(s.client, ["compare", *SIDES], **few)[0] < 0


def who_is_killed_takes_the_child_along(s, folder):
    """The child writes into a full pipe that nobody reads."""
    reader, writer = os.pipe()
    os.write(writer, bytes(fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)))
    p = subprocess.Popen([s.client, "show", SIDES[0]], stdout=writer, env=s.environment)
    ends = time.monotonic() + 60
    while not s.children() and time.monotonic() < ends:
        time.sleep(0.01)
    assert s.children() and p.poll() is None
    p.send_signal(signal.SIGKILL)
    p.wait()
    while s.children() and time.monotonic() < ends:
        time.sleep(0.01)
    assert not s.children()
    os.close(reader)
    os.close(writer)


TESTS = [
    the_same_answers,
    the_same_report_where_it_was_asked_for,
    what_it_cannot_serve_the_program_does,
    limits_of_time_hold,
    who_is_killed_takes_the_child_along,
]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--build", default=os.path.join(ROOT, "build"))
    o = a.parse_args()
    passed = failed = 0
    for test in TESTS:
        with tempfile.TemporaryDirectory() as folder:
            s = Server(os.path.abspath(o.build), folder)
            try:
                test(s, folder)
                passed += 1
            except Exception as e:
                failed += 1
                print("%s: %s: %s" % (test.__name__, type(e).__name__, e))
            if s.end():
                failed += 1
                print("%s: the server ended with %d" % (test.__name__, s.process.returncode))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
