#!/usr/bin/env python3
"""Helpers that run operators fail: one dies at its n-th call, hangs, is killed, answers nonsense
or runs out of memory. No such failure says anything of the graphs: the verdict is `undecided` or an
error (status 2), for graphs that are equal and for graphs that differ.
The helper here is a few lines of Python that speak the protocol (validate/exec/helper.c).

    tests/cli/failing.py [--isomer build/isomer] [--calls N]"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "pairs"))
import dsl  # noqa: E402

HELPER = r"""
import array, json, os, signal, socket, struct, sys, time
mode, at = os.environ["FAIL"], int(os.environ["FAIL_AT"])
counter = os.environ["FAIL_COUNT"]
s = socket.socket(fileno=int(os.environ["ISOMER_HELPER_SOCKET"]))
memory = int(os.environ["ISOMER_HELPER_MEMORY"])
def send(o):
    b = json.dumps(o).encode()
    s.sendall(struct.pack("<I", len(b)) + b)
def take(n):
    b = b""
    while len(b) < n:
        more = s.recv(n - len(b))
        if not more: sys.exit(0)
        b += more
    return b
KIND = {"float64": "d", "float32": "f", "int64": "q"}
def tensor(a):
    dtype, shape, offset = a["tensor"]
    n = 1
    for d in shape: n *= d
    v = array.array(KIND[dtype])
    v.frombytes(os.pread(memory, n * v.itemsize, offset))
    return dtype, shape, v
END = 1 << 20
def answer(dtype, shape, v):
    os.pwrite(memory, array.array(KIND[dtype], v).tobytes(), END)
    send({"outputs": [[dtype, shape, END]]})
send({"isomer-helper": 1, "seconds": 1})
while True:
    call = json.loads(take(struct.unpack("<I", take(4))[0]))
    with open(counter, "a+") as f:
        f.write("x"); f.flush(); n = f.tell()
    if n == at or (at < 0 and n >= -at):
        if mode == "exit": os._exit(3)
        if mode == "kill": os.kill(os.getpid(), signal.SIGKILL)
        if mode == "abort": os.abort()
        if mode == "hang": time.sleep(600)
        if mode == "nonsense": s.sendall(struct.pack("<I", 4) + b"...."); continue
        if mode == "shape": send({"outputs": [["float64", [1 << 30], 0]]}); continue
        if mode == "none": send({"outputs": 5}); continue
        if mode == "memory": send({"error": "MemoryError: "}); continue
        if mode == "cuda":
            send({"error": "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"})
            continue
    args = call["args"]["list"] if isinstance(call["args"], dict) else call["args"]
    if call["op"] == "mine::rows":
        dtype, shape, v = tensor(args[0])
        _, ids_shape, ids = tensor(args[1])
        w = shape[1]
        if any(i < 0 or i >= shape[0] for i in ids): send({"error": "IndexError: out of range"})
        else: answer(dtype, ids_shape + [w], [x for i in ids for x in v[i * w:(i + 1) * w]])
    else:
        dtype, shape, v = tensor(args[0])
        answer(dtype, shape, [2 * x for x in v])
"""


def rows(g, op, scale):
    x = g.x(3, 4)
    t = g.param("table", 7, 4)
    ids = g.ints("ids", [3, 1, 6], below=7)
    if op == "mine::rows":
        r = g.op("mine::rows", [t, ids], [((3, 4), dsl.f32)])[0]
    else:
        r = t.op("index_select", [t, 0, ids], (3, 4))
    return (r + x) * scale


def twice(g, own):
    x = g.x(3, 4)
    return (g.op("mine::twice", [x], [((3, 4), dsl.f32)])[0] if own else x + x).relu()


PAIRS = {
    "rows": (lambda g: rows(g, "mine::rows", 1.5), lambda g: rows(g, "aten", 1.5), True),
    "rows, wrong": (lambda g: rows(g, "mine::rows", 1.5), lambda g: rows(g, "aten", 1.51), False),
    "twice": (lambda g: twice(g, True), lambda g: twice(g, False), True),
}
MODES = ["exit", "kill", "abort", "nonsense", "shape", "none", "memory", "cuda"]


class Run:
    def __init__(self, isomer, folder):
        self.isomer, self.folder, self.n = isomer, folder, 0
        self.helper = os.path.join(folder, "helper.py")
        with open(self.helper, "w", encoding="utf-8") as f:
            f.write(HELPER)
        for name, (left, right, _) in PAIRS.items():
            for side, build in (("left", left), ("right", right)):
                g = dsl.Graph()
                g.write(os.path.join(folder, name, side), {"y": build(g)})

    def compare(self, name, mode, at, tag, more=(), limit=None):
        count = os.path.join(self.folder, "count-" + tag)
        if os.path.exists(count):
            os.remove(count)
        env = dict(os.environ, FAIL=mode, FAIL_AT=str(at), FAIL_COUNT=count)
        before = (lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))) if limit else None
        p = subprocess.run(
            [
                self.isomer,
                "compare",
                os.path.join(self.folder, name, "left"),
                os.path.join(self.folder, name, "right"),
                "--helper",
                "exec %s %s" % (sys.executable, self.helper),
                *more,
            ],
            capture_output=True,
            text=True,
            env=env,
            timeout=300,
            preexec_fn=before,
        )
        calls = os.path.getsize(count) if os.path.exists(count) else 0
        return p.returncode, calls, (p.stdout + p.stderr).strip().rsplit("\n", 1)[-1]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--calls", type=int, default=9, help="of a pair, spread over its calls")
    o = a.parse_args()
    failed = passed = 0

    def check(fine, what):
        nonlocal failed, passed
        passed, failed = passed + bool(fine), failed + (not fine)
        if not fine:
            print("FAILED " + what)

    with tempfile.TemporaryDirectory() as folder:
        run = Run(o.isomer, folder)
        todo = []
        for name, (_, _, same) in PAIRS.items():
            code, calls, says = run.compare(name, "none", 0, "first")
            check(
                code == (0 if same else 1),
                "%s without a failure: status %d: %s" % (name, code, says),
            )
            check(calls > 2, "%s: %d calls" % (name, calls))
            at = sorted({1, 2, 3, calls} | {1 + k * calls // o.calls for k in range(o.calls)})
            for k, n in enumerate(at):
                for m, mode in enumerate(MODES):
                    if n < 3 or (k + m) % 3 == 0:
                        todo.append((name, mode, n))
            todo.append((name, "hang", calls // 2))
            todo += [(name, mode, -2) for mode in ("exit", "kill")]

        def one(item):
            k, (name, mode, at) = item
            return (name, mode, at) + run.compare(name, mode, at, str(k))

        with ThreadPoolExecutor(2) as pool:
            for name, mode, at, code, calls, says in pool.map(one, enumerate(todo)):
                hit = calls >= abs(at)
                check(
                    code in (2, 3) or not hit,
                    "%s, helper fails (%s) at call %d: status %d: %s"
                    % (name, mode, at, code, says),
                )
        for name, (_, _, same) in PAIRS.items():
            for limit in (60 << 20, 250 << 20, 500 << 20, 900 << 20):
                for how in ("--memory", "RLIMIT_AS"):
                    more, most = (
                        (("--memory", str(limit)), None) if how == "--memory" else ((), limit)
                    )
                    code, _, says = run.compare(name, "none", 0, "memory", more, most)
                    right = 0 if same else 1
                    check(
                        code in (2, 3, right) or code == 127,
                        "%s, %s %d: status %d: %s" % (name, how, limit, code, says),
                    )
            code, _, says = run.compare(name, "none", 0, "time", ("--timeout", "0.001"))
            check(code in (3, 0 if same else 1), "%s, no time: status %d: %s" % (name, code, says))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
