#!/usr/bin/env python3
"""Damage by a user, a disk or a broken exporter, beyond tests/cli/e2e.py. Each time the program
says in one line where the fault is and exits with status 2, in bounded time. Nothing is
half-written, and nothing crashes. Plain Python 3.

    tests/cli/robust.py [--isomer build/isomer] [--no-torch] [--flips 1500] [--jobs N]

The last line is `N passed, N failed`. --flips: damaged copies of a capture, each given to `show`
(and some to `compare`)."""

import argparse
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "bench"))
import stack  # noqa: E402

LIMIT = float(os.environ.get("E2E_TIMEOUT", 60))
CASES = []


class Wrong(Exception):
    pass


def expect(ok, message, *args):
    if not ok:
        raise Wrong(message % args if args else message)


def case(name, torch=True):
    def add(f):
        CASES.append((name, torch, f))
        return f

    return add


def isomer(*args, **more):
    try:
        p = subprocess.run(
            [O.isomer] + [str(a) for a in args],
            stdin=subprocess.DEVNULL,
            stdout=more.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            timeout=LIMIT,
            **more,
        )
    except subprocess.TimeoutExpired:
        raise Wrong("no answer after %g s: %s" % (LIMIT, " ".join(map(str, args))))
    expect(0 <= p.returncode < 99, "ended with %d: %s", p.returncode, p.stderr[-1000:])
    if p.stderr:  # what AddressSanitizer says of a refused allocation is its own
        p.stderr = b"".join(
            x for x in p.stderr.splitlines(True) if b"AddressSanitizer failed to allocate" not in x
        )
    return p


def fails(*args, mentions=None, **more):
    p = isomer(*args, **more)
    err = p.stderr.decode("utf-8", "replace")
    expect(
        p.returncode == 2,
        "exit status %d, not 2: %s",
        p.returncode,
        " ".join(map(str, args))[-100:],
    )
    expect(err.count("\n") == 1 and err.startswith("isomer: "), "not one line: %r", err[:300])
    if mentions:
        expect(mentions in err, "does not mention %s: %r", mentions, err[:300])
    return err


# ---- a small capture ----

F = "float32"


def leaf(kind, name, shape, dtype=F):
    return {"id": name, "op": kind, "name": name, "outputs": [{"shape": shape, "dtype": dtype}]}


def call(name, op, args, shape, dtype=F, **kwargs):
    return {
        "id": name,
        "op": op,
        "args": args,
        "kwargs": kwargs,
        "outputs": [{"shape": shape, "dtype": dtype}],
    }


def ref(name):
    return {"ref": name}


def floats(values):
    return struct.pack("<%df" % len(values), *values)


def capture(folder, nodes, result, weights, inputs):
    os.makedirs(folder)
    graph = {
        "format": "isomer-capture",
        "version": 1,
        "nodes": nodes,
        "outputs": [{"name": "y", "ref": result}],
    }
    with open(os.path.join(folder, "graph.json"), "w") as f:
        json.dump(graph, f)
    stack.write_tensors(os.path.join(folder, "weights.safetensors"), weights)
    stack.write_tensors(os.path.join(folder, "inputs.safetensors"), inputs)
    return folder


RNG = random.Random(5)
W = [RNG.gauss(0, 1) for _ in range(20)]
X = [RNG.gauss(0, 1) for _ in range(12)]


def linear(folder, w=W, x=X, tail=(), result="l"):
    """y = x w^T, and what `tail` makes of it."""
    return capture(
        folder,
        [
            leaf("input", "x", [3, 4]),
            leaf("parameter", "w", [5, 4]),
            call("l", "aten::linear", [ref("x"), ref("w")], [3, 5]),
            *tail,
        ],
        result,
        {"w": ("F32", [5, 4], floats(w))},
        {"x": ("F32", [3, 4], floats(x))},
    )


def product(folder, tail=(), result="l"):
    """The same with the weight transposed and mm."""
    turned = [W[4 * r + c] for c in range(4) for r in range(5)]
    return capture(
        folder,
        [
            leaf("input", "x", [3, 4]),
            leaf("parameter", "wt", [4, 5]),
            call("l", "aten::mm", [ref("x"), ref("wt")], [3, 5]),
            *tail,
        ],
        result,
        {"wt": ("F32", [4, 5], floats(turned))},
        {"x": ("F32", [3, 4], floats(X))},
    )


def both(tmp):
    return linear(os.path.join(tmp, "left")), product(os.path.join(tmp, "right"))


@case("the small pair is equivalent")
def _(tmp):
    left, right = both(tmp)
    expect(isomer("compare", left, right).returncode == 0, "it is not")


# ---- files that are not files ----


def replaced(how):
    def run(tmp):
        for file in "graph.json", "weights.safetensors", "inputs.safetensors":
            folder = linear(os.path.join(tmp, file))
            path = os.path.join(folder, file)
            os.remove(path)
            how(path)
            fails("show", folder, mentions=file)

    return run


def loop_of_links(path):
    os.symlink(path, path)


for _name, _how in (
    ("a folder", os.mkdir),
    ("a FIFO", os.mkfifo),
    ("an empty file", lambda p: open(p, "w").close()),
    ("a link to itself", loop_of_links),
    ("a link to nothing", lambda p: os.symlink("/no/such/file", p)),
    ("a device", lambda p: os.symlink("/dev/zero", p)),
    ("/dev/full", lambda p: os.symlink("/dev/full", p)),
):
    case(_name + " in place of a file", False)(replaced(_how))


@case("rule files that are none")
def _(tmp):
    left, right = both(tmp)
    path = os.path.join(tmp, "f.rules")
    for how in (
        os.mkdir,
        os.mkfifo,
        loop_of_links,
        lambda p: os.symlink("/dev/zero", p),
        lambda p: os.symlink("/no/such/file", p),
        lambda p: os.truncate(os.open(p, os.O_CREAT | os.O_WRONLY), 1 << 33),
    ):
        how(path)
        fails("compare", left, right, "--rules", path, mentions=path)
        os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)


@case("a file in place of the capture, and a name of 5000 bytes", False)
def _(tmp):
    path = os.path.join(tmp, "file")
    open(path, "w").close()
    fails("show", path)
    fails("show", "x" * 5000)
    fails("show", "")


# ---- sizes ----


@case("absurd lengths of headers", False)
def _(tmp):
    for n in (
        1 << 32,
        (1 << 32) - 8,
        (1 << 63) - 1,
        1 << 63,
        (1 << 64) - 1,
        (1 << 64) - 8,
        100000001,
        0,
        1,
    ):
        folder = linear(os.path.join(tmp, "c%d" % n))
        path = os.path.join(folder, "weights.safetensors")
        data = open(path, "rb").read()
        with open(path, "wb") as f:
            f.write(struct.pack("<Q", n) + data[8:])
        fails("show", folder, mentions="weights.safetensors")


@case("a header of 4 GiB that is there, in a sparse file", False)
def _(tmp):
    folder = linear(os.path.join(tmp, "c"))
    path = os.path.join(folder, "weights.safetensors")
    with open(path, "r+b") as f:
        f.write(struct.pack("<Q", 1 << 32))
        f.truncate((1 << 32) + 4096)
    fails("show", folder, mentions="weights.safetensors")


@case("a graph.json of 8 GiB, sparse", False)
def _(tmp):
    folder = linear(os.path.join(tmp, "c"))
    with open(os.path.join(folder, "graph.json"), "r+b") as f:
        f.truncate(8 << 30)
    fails("show", folder, mentions="graph.json")


@case("sizes whose product overflows", False)
def _(tmp):
    for k, shape in enumerate(
        ([2**62], [2**32, 2**32], [2**31, 2**31, 4], [0, 2**62, 8], [2**63 - 1, 2], [3, 2**61 + 1])
    ):
        for node in 0, 1, 2:
            folder = linear(os.path.join(tmp, "c%d.%d" % (k, node)))
            path = os.path.join(folder, "graph.json")
            g = json.load(open(path))
            g["nodes"][node]["outputs"][0]["shape"] = shape
            json.dump(g, open(path, "w"))
            fails("show", folder, mentions="graph.json" if node == 2 else None)


@case("an operator that asks for a terabyte and more")
def _(tmp):
    good = linear(os.path.join(tmp, "good"))
    for k, size in enumerate((1 << 40, 1 << 50, (1 << 60) - 1)):
        tail = (
            call("big", "aten::zeros", [[size]], [size]),
            call("s", "aten::sum", [ref("big")], []),
            call("a", "aten::add.Tensor", [ref("l"), ref("s")], [3, 5]),
        )
        bad = linear(os.path.join(tmp, "c%d" % k), tail=tail, result="a")
        fails("compare", good, bad, mentions="big")
        fails("run", bad, "--propagate", mentions="big")


# ---- JSON ----


@case("nesting of a million", False)
def _(tmp):
    for k, (a, z) in enumerate((("[", "]"), ('{"x":', "}"))):
        folder = linear(os.path.join(tmp, "c%d" % k))
        path = os.path.join(folder, "graph.json")
        text = open(path).read()
        with open(path, "w") as f:
            f.write('{"metadata": ' + a * 1000000 + "1" + z * 1000000 + "," + text[1:])
        fails("show", folder, mentions="graph.json")
        folder = linear(os.path.join(tmp, "h%d" % k))
        with open(os.path.join(folder, "weights.safetensors"), "wb") as f:
            head = (a * 1000000).encode()
            f.write(struct.pack("<Q", len(head)) + head)
        fails("show", folder, mentions="weights.safetensors")


@case("text that is not UTF-8, NUL bytes, surrogates, numbers out of range", False)
def _(tmp):
    for k, (old, new) in enumerate(
        (
            (b'"linear"', b'"lin\xffear"'),
            (b'"l"', b'"\xc0\x80"'),
            (b'"l"', b'"\\u0000"'),
            (b'"l"', b'"\\ud800"'),
            (b"[3, 5]", b"[3, 1e999]"),
            (b"[3, 5]", b"[3, 99999999999999999999]"),
            (b"[3, 5]", b"[3, NaN]"),
            (b'"l"', b'"\xed\xa0\x80"'),
        )
    ):
        folder = linear(os.path.join(tmp, "c%d" % k))
        path = os.path.join(folder, "graph.json")
        data = open(path, "rb").read()
        if old not in data:
            old = b"aten::linear"
        with open(path, "wb") as f:
            f.write(data.replace(old, new.strip(b'"') if old == b"aten::linear" else new, 1))
        fails("show", folder, mentions="graph.json")


@case("a cycle, a reference to itself, an id twice", False)
def _(tmp):
    def change(name, f):
        folder = linear(
            os.path.join(tmp, name), tail=(call("r", "aten::relu", [ref("l")], [3, 5]),), result="r"
        )
        path = os.path.join(folder, "graph.json")
        g = json.load(open(path))
        f(g["nodes"])
        json.dump(g, open(path, "w"))
        fails("show", folder, mentions="graph.json")

    change("cycle", lambda n: n[2]["args"].__setitem__(0, ref("r")))
    change("self", lambda n: n[3]["args"].__setitem__(0, ref("r")))
    change("twice", lambda n: n[3].__setitem__("id", "l"))


# ---- values and operators ----


@case("weights that are NaN, infinite, subnormal")
def _(tmp):
    left, right = both(tmp)
    for k, value in enumerate((float("nan"), float("inf"), -float("inf"), 1e-42, 3.4e38)):
        bad = linear(os.path.join(tmp, "c%d" % k), w=[value] + W[1:])
        p = isomer("compare", bad, right)
        expect(
            p.returncode in (1, 3),
            "%g in one weight of one side: exit status %d",
            value,
            p.returncode,
        )
        p = isomer("compare", bad, bad)
        expect(p.returncode in (0, 3), "%g on both sides: exit status %d", value, p.returncode)


@case("operators that throw: on one side a divergence or an error, on both an error")
def _(tmp):
    good = linear(os.path.join(tmp, "good"))
    out = (
        call("i", "aten::arange", [9], [9], "int64"),
        call("s", "aten::index_select", [ref("l"), 0, ref("i")], [9, 5]),
        call("m", "aten::mean.dim", [ref("s"), [0], True], [1, 5]),
        call("a", "aten::add.Tensor", [ref("l"), ref("m")], [3, 5]),
    )
    bad = linear(os.path.join(tmp, "bad"), tail=out, result="a")
    p = isomer("compare", good, bad)
    expect(p.returncode in (1, 2), "one side: exit status %d", p.returncode)
    fails("compare", bad, bad, mentions='"s"')


@case("operators that nobody has, that write, that draw")
def _(tmp):
    good = linear(os.path.join(tmp, "good"))
    for k, op in enumerate(
        ("no::such", "aten::no_such", "aten::relu_", "aten::bernoulli", "aten::rand_like")
    ):
        bad = linear(
            os.path.join(tmp, "c%d" % k), tail=(call("bad", op, [ref("l")], [3, 5]),), result="bad"
        )
        fails("compare", good, bad, mentions="bad")
        fails("compare", bad, good, mentions="bad")


# ---- output ----


def listing(folder):
    return sorted(os.listdir(folder))


@case("results onto a full device, into a folder that may not be written or is none")
def _(tmp):
    left, right = both(tmp)
    out = os.path.join(tmp, "out")
    os.mkdir(out)
    for option in "--json", "--save-rules":
        for path in (
            out,
            os.path.join(out, "none", "file"),
            os.path.join(out, "x" * 300),
            "/proc/none",
        ):
            fails("compare", left, right, "-q", option, path, mentions=path)
        expect(not listing(out), "%s leaves %s", option, listing(out))
    if os.geteuid() != 0:
        os.chmod(out, 0o500)
        fails("compare", left, right, "--json", os.path.join(out, "r.json"), mentions="r.json")
        os.chmod(out, 0o700)
    with open("/dev/full", "wb") as full:
        for args in (
            ("compare", left, right),
            ("compare", left, right, "--json", "-"),
            ("run", left),
            ("show", left),
        ):
            p = isomer(*args, stdout=full)
            expect(p.returncode == 2, "%s: exit status %d", args[0], p.returncode)


@case("a limit on the size of files: nothing half-written")
def _(tmp):
    left, right = both(tmp)
    out = os.path.join(tmp, "out")
    os.mkdir(out)
    for name, option in ("r.json", "--json"), ("f.rules", "--save-rules"):
        path = os.path.join(out, name)
        with open(path, "w") as f:
            f.write("old")
        p = subprocess.run(
            [
                "bash",
                "-c",
                'ulimit -f 0; trap "" XFSZ; exec "$@"',
                "-",
                O.isomer,
                "compare",
                left,
                right,
                "-q",
                option,
                path,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=LIMIT,
        )
        expect(p.returncode == 2, "%s: exit status %d: %s", option, p.returncode, p.stderr[-300:])
        expect(open(path).read() == "old", "%s: the old file is gone", option)
    expect(listing(out) == ["f.rules", "r.json"], "left behind: %s", listing(out))


@case("what is neither a capture nor an archive is told apart")
def _(tmp):
    for content, words in (
        (b"\x08\x07\x12\x07pytorch", b"seems to be an ONNX model, which is not read"),
        (b'{"nodes": []}', b"is no archive: a capture is the folder that holds graph.json"),
        (b"PK\x03\x04", b"is no complete zip file (is it truncated?)"),
        (b"a text", b"is neither a capture's folder nor an archive of torch.export.save"),
    ):
        path = os.path.join(tmp, "side")
        with open(path, "wb") as f:
            f.write(content)
        for command in (("compare", path, path), ("show", path)):
            p = isomer(*command)
            expect(p.returncode == 2, "%s: exit status %d", content, p.returncode)
            expect(words in p.stderr, "%s: %s", content, p.stderr[-200:])
            expect(p.stderr.count(b"\n") == 1, "%s: more than one line", content)


# ---- limits and signals ----


@case("limits on time and memory are undecided")
def _(tmp):
    left, right = both(tmp)
    # AddressSanitizer maps terabytes of its own: no limit on memory can be tried under it.
    limits = [("--timeout", "1e-6")] + (
        [] if "ASAN_OPTIONS" in os.environ else [("--memory", "1K"), ("--memory", "20M")]
    )
    for args in limits:
        path = os.path.join(tmp, "r.json")
        p = isomer("compare", left, right, "--json", path, *args)
        expect(p.returncode == 3, "%s: exit status %d", args, p.returncode)
        expect(
            p.stdout.splitlines()[-1].startswith(
                b"isomer: UNDECIDED: the %s limit" % args[0][2:].replace("timeout", "time").encode()
            ),
            "last line %s",
            p.stdout[-100:],
        )
        report = json.load(open(path))
        expect(report["verdict"] == "undecided", "the report says another thing")
        named = re.search(
            rb"'s \S+, the largest tensor, takes [0-9.]+ MiB in float64, and [0-9.]+ are allowed$",
            p.stdout.splitlines()[-1],
        )
        expect(bool(named) == (args[0] == "--memory"), "%s: %s", args, p.stdout[-200:])
    p = isomer(
        "compare", left, right, "--timeout", "100", *(["--memory", "8G"] if len(limits) > 1 else [])
    )
    expect(p.returncode == 0, "within its limits: exit status %d", p.returncode)
    for args in (("--timeout", x) for x in ("0", "-1", "nan", "inf", "x", "1s", "")):
        expect(isomer("compare", left, right, *args).returncode == 2, "%s is taken", args)
    for args in (
        ("--memory", x)
        for x in ("0", "-1", "1.5G", "G", "1KB", "99999999999999999999", "20000000000G", "")
    ):
        expect(isomer("compare", left, right, *args).returncode == 2, "%s is taken", args)


@case("SIGINT prints what is known and exits 130")
def _(tmp):
    left, right = both(tmp)
    p = subprocess.Popen(
        [O.isomer, "compare", left, right, "--trace"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    time.sleep(0.05)
    p.send_signal(signal.SIGINT)
    out, _ = p.communicate(timeout=LIMIT)
    # Before the handler is there it ends the process as any other.
    expect(p.returncode in (130, -signal.SIGINT), "exit status %d", p.returncode)
    if p.returncode == 130:
        expect(out.splitlines()[-1].startswith(b"isomer: "), "nothing is said: %s", out[-100:])


@case("optimisations may be switched off, one or all")
def _(tmp):
    left, right = both(tmp)
    for what in (
        "signature",
        "fingerprint",
        "reachable",
        "lazy",
        "reuse",
        "signature,fingerprint,reachable,lazy,reuse",
    ):
        expect(
            isomer("compare", left, right, "--disable", what).returncode == 0,
            "without %s it is not equivalent",
            what,
        )
    for what in "", ",", "lazy,", "nothing", "signatures":
        expect(
            isomer("compare", left, right, "--disable", what).returncode == 2,
            "--disable %s is taken",
            what,
        )


@case("--jobs bounds threads, and the same bytes come out")
def _(tmp):
    left, right = both(tmp)
    out = {
        isomer("compare", left, right, "--no-stats", "--json", "-", "--jobs", n).stdout
        for n in ("1", "2", "64")
    }
    expect(len(out) == 1 and b"equivalent" in out.pop(), "the report depends on --jobs")
    for n in "0", "-1", "x", "1025", "":
        expect(isomer("compare", left, right, "--jobs", n).returncode == 2, "--jobs %s is taken", n)


@case("colour is asked for, or for terminals")
def _(tmp):
    left, right = both(tmp)
    for words, env, want in (
        (["--color", "always"], {}, True),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color=never"], {}, False),
        ([], {}, False),
    ):
        out = isomer("compare", left, right, "-q", *words, env=dict(os.environ, **env)).stdout
        expect(
            (b"\033[" in out) == want and b"EQUIVALENT" in out and out.startswith(b"isomer: "),
            "%s %s: %r",
            words,
            env,
            out,
        )
    expect(
        isomer("compare", left, right, "--color", "green").returncode == 2, "--color green is taken"
    )


# ---- many damaged copies ----


def damage(rng, folder):
    file = rng.choice(("graph.json", "graph.json", "weights.safetensors", "inputs.safetensors"))
    path = os.path.join(folder, file)
    data = bytearray(open(path, "rb").read())
    kind = rng.randrange(4)
    if kind == 0:
        del data[rng.randrange(len(data)) :]
    elif kind == 1:
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 2:
        at = rng.randrange(len(data))
        data[at : at + rng.randrange(1, 20)] = rng.randbytes(rng.randrange(0, 20))
    else:
        at, n = rng.randrange(len(data)), rng.randrange(1, 60)
        data[at:at] = data[at : at + n]
    with open(path, "wb") as f:
        f.write(data)


def damaged(commands, seed, n):
    def run(tmp):
        rng = random.Random(seed)
        good = product(os.path.join(tmp, "good"))
        source = linear(
            os.path.join(tmp, "source"),
            tail=(call("r", "aten::relu", [ref("l")], [3, 5]),),
            result="r",
        )
        for k in range(n):
            bad = os.path.join(tmp, "bad")
            shutil.copytree(source, bad)
            damage(rng, bad)
            args = (
                ("show", bad)
                if commands == "show"
                else ("compare", good, bad, "-q", "--timeout", 20)
            )
            p = isomer(*args)
            err = p.stderr.decode("utf-8", "replace")
            expect(p.returncode in (0, 1, 2, 3), "copy %d: exit status %d", k, p.returncode)
            expect(
                p.returncode != 2 or (err.count("\n") == 1 and err.startswith("isomer: ")),
                "copy %d: not one line: %r",
                k,
                err[:300],
            )
            shutil.rmtree(bad)

    return run


def attempt(c):
    with tempfile.TemporaryDirectory() as tmp:
        try:
            c[2](tmp)
            return None
        except Wrong as e:
            return str(e)
        except Exception as e:
            return "%s: %s" % (type(e).__name__, e)


def main():
    global O
    a = argparse.ArgumentParser(description="robustness, end to end")
    a.add_argument(
        "--isomer", default=os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "isomer")
    )
    a.add_argument("--no-torch", action="store_true")
    a.add_argument("--flips", type=int, default=1500)
    a.add_argument("--only", default="")
    a.add_argument("--jobs", type=int, default=2)
    O = a.parse_args()
    O.isomer = os.path.abspath(O.isomer)
    for k in range(4):
        CASES.append(("damaged copies, show %d" % k, False, damaged("show", k, O.flips // 4)))
        CASES.append(
            ("damaged copies, compare %d" % k, True, damaged("compare", 100 + k, O.flips // 100))
        )
    cases = [c for c in CASES if O.only in c[0] and not (O.no_torch and c[1])]
    passed = failed = 0
    with ThreadPoolExecutor(O.jobs) as pool:
        for c, wrong in zip(cases, pool.map(attempt, cases)):
            passed += wrong is None
            failed += wrong is not None
            if wrong:
                print("FAILED %s: %s" % (c[0], wrong.replace("\n", " ")), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
