#!/usr/bin/env python3
"""Events in JSON: one finding of each kind at its event, its correct twin clean, files that are
malformed.

tests/lint/events.py [--isomer build/isomer]"""

import argparse
import json
import os
import tempfile

from harness import Lint, ROOT, STATUS, check, finish

CASES = []


def doc(*ranks, backend=None, **more):
    d = {"format": "isomer-events", "version": 1, "world": len(ranks), "ranks": list(ranks)}
    d.update({"backend": backend} if backend else {}, **more)
    return d


def ev(op, **more):
    return {"op": op, **more}


def send(peer, **more):
    return ev("send", peer=peer, **more)


def recv(peer, **more):
    return ev("recv", peer=peer, **more)


def case(name, d, *found, args=(), progress=None):
    """`found`: (kind, rank, position) of each finding, among whose events that must be; nothing:
    clean."""
    CASES.append((name, d, found, args, progress))


case("a message", doc([send(1, numel=4)], [recv(0, numel=4)]))
case(
    "head to head, blocking",
    doc([send(1), recv(1)], [send(0), recv(0)]),
    ("deadlock", 0, 0),
    progress={
        "buffered": "ok",
        "rendezvous": "deadlock",
        "stream": "deadlock",
        "serial": "deadlock",
    },
)
case(
    "head to head, gloo without waiting",
    doc(
        [send(1, handle="a"), recv(1), ev("wait", handle="a")],
        [send(0, handle="a"), recv(0), ev("wait", handle="a")],
        backend="gloo",
    ),
    progress={"buffered": "ok", "rendezvous": "ok", "stream": "deadlock", "serial": "deadlock"},
)
case(
    "head to head in batches",
    doc(*[[ev("batch", ops=[send(1 - r), recv(1 - r)])] for r in (0, 1)], backend="nccl"),
    progress={"stream": "ok", "serial": "ok", "rendezvous": "ok", "buffered": "ok"},
)
case(
    "a batch with one handle",
    doc(
        *[
            [ev("batch", ops=[send(1 - r), recv(1 - r)], handle="h"), ev("wait", handle="h")]
            for r in (0, 1)
        ],
        backend="nccl",
    ),
)
case(
    "the model that is asked for",
    doc([send(1), recv(1)], [send(0), recv(0)]),
    args=("--progress", "buffered"),
)
case("a receive from oneself that comes later", doc([recv(0), send(0)]), ("deadlock", 0, 0))
case("nobody receives", doc([send(1), send(1)], [recv(0)]), ("unmatched-send", 0, 1))
case("nobody sends", doc([send(1)], [recv(0), recv(0)]), ("unmatched-recv", 1, 1))
case(
    "the middle one is missing by size",
    doc([send(1, numel=n) for n in (1, 2, 3, 4)], [recv(0, numel=n) for n in (1, 3, 4)]),
    ("unmatched-send", 0, 1),
)
case("wrong peer of a send", doc([send(2)], [recv(0)], []), ("wrong-peer", 0, 0))
case("wrong peer of a receive", doc([send(1)], [recv(2)], []), ("wrong-peer", 1, 0))
case(
    "tags on gloo", doc([send(1, tag=3)], [recv(0, tag=4)], backend="gloo"), ("tag-mismatch", 0, 0)
)
case("tags on nccl", doc([send(1, tag=3)], [recv(0, tag=4)], backend="nccl"))
case(
    "tags in another order on gloo",
    doc(
        [send(1, tag=1, handle="a"), send(1, tag=2), ev("wait", handle="a")],
        [recv(0, tag=2), recv(0, tag=1)],
        backend="gloo",
    ),
)
case(
    "tags in another order on nccl",
    doc([send(1, tag=1), send(1, tag=2)], [recv(0, tag=2), recv(0, tag=1)], backend="nccl"),
    ("tag-mismatch", 1, 0),
)
case(
    "tags in order on nccl, with one that only one side gives",
    doc(
        [send(1, tag=1), send(1, tag=7), send(1, tag=2)],
        [recv(0, tag=1), recv(0), recv(0, tag=2)],
        backend="nccl",
    ),
)
case("sizes", doc([send(1, numel=4)], [recv(0, numel=8)]), ("size-mismatch", 1, 0))
case(
    "dtypes", doc([send(1, dtype="float32")], [recv(0, dtype="bfloat16")]), ("dtype-mismatch", 1, 0)
)
case(
    "dtypes as torch prints them", doc([send(1, dtype="torch.float32")], [recv(0, dtype="float32")])
)
case(
    "microbatches",
    doc([send(1, mb=0), send(1, mb=1)], [recv(0, mb=1), recv(0, mb=0)]),
    ("value-mismatch", 1, 0),
)
case(
    "groups",
    doc([send(1, group="a")], [recv(0, group="b")], groups={"a": [0, 1], "b": [0, 1]}),
    ("group-mismatch", 0, 0),
)
case("no member", doc([ev("barrier", group="a")], [], groups={"a": [1]}), ("group-mismatch", 0, 0))
case("a peer outside", doc([send(7)], []), ("out-of-range", 0, 0))

AR = lambda **k: ev("all_reduce", numel=8, reduce="sum", dtype="float32", **k)  # noqa: E731
case("collectives", doc([AR(), ev("barrier")], [AR(), ev("barrier")], [AR(), ev("barrier")]))
case(
    "another operator",
    doc(*[[AR(), ev("all_gather" if r == 2 else "all_reduce", numel=8)] for r in range(3)]),
    ("collective-mismatch", 2, 1),
)
case(
    "exchanged",
    doc([AR(), ev("barrier")], [ev("barrier"), AR()], [AR(), ev("barrier")]),
    ("collective-mismatch", 1, 0),
)
case(
    "another reduction",
    doc(*[[{**AR(), "reduce": "max" if r == 1 else "sum"}] for r in range(3)]),
    ("reduce-mismatch", 1, 0),
)
case(
    "another dtype",
    doc(*[[{**AR(), "dtype": "bfloat16" if r == 1 else "float32"}] for r in range(3)]),
    ("dtype-mismatch", 1, 0),
)
case(
    "another size",
    doc(*[[{**AR(), "numel": 9 if r == 1 else 8}] for r in range(3)]),
    ("size-mismatch", 1, 0),
)
case(
    "another root",
    doc(*[[ev("broadcast", root=r == 2 and 1 or 0)] for r in range(3)]),
    ("root-mismatch", 2, 0),
)
case(
    "a root outside",
    doc([ev("broadcast", root=5)], [ev("broadcast", root=5)]),
    ("root-mismatch", 0, 0),
    ("root-mismatch", 1, 0),
)
case(
    "one is missing",
    doc([AR(buffer=b) for b in "abc"], [AR(buffer=b) for b in "ac"], [AR(buffer=b) for b in "abc"]),
    ("missing-collective", 0, 1),
)
case(
    "one is too many",
    doc([AR(buffer=b) for b in "ac"], [AR(buffer=b) for b in "abc"], [AR(buffer=b) for b in "ac"]),
    ("missing-collective", 1, 1),
)
case(
    "another group",
    doc([AR(group="a")], [AR(group="b")], groups={"a": [0, 1], "b": [0, 1]}),
    ("group-mismatch", 1, 0),
)
case(
    "gathered too small",
    doc(*[[ev("all_gather", numel=4, out_numel=12 if r else 8)] for r in (0, 1)]),
    ("size-mismatch", 1, 0),
)
case(
    "splits",
    doc(
        [ev("all_to_all", in_splits=[1, 2], out_splits=[1, 3])],
        [ev("all_to_all", in_splits=[3, 4], out_splits=[2, 4])],
    ),
)
case(
    "splits that differ",
    doc(
        [ev("all_to_all", in_splits=[1, 2], out_splits=[1, 3])],
        [ev("all_to_all", in_splits=[3, 4], out_splits=[9, 4])],
    ),
    ("split-mismatch", 0, 0),
)
case(
    "splits that do not add up",
    doc([ev("all_to_all", numel=9, in_splits=[1, 2])], [ev("all_to_all", in_splits=[1, 2])]),
    ("split-mismatch", 0, 0),
)
AB = {"a": [0, 1], "b": [0, 1]}
case(
    "two groups in two orders",
    doc([AR(group="a"), AR(group="b")], [AR(group="b"), AR(group="a")], groups=AB),
    ("deadlock", 0, 0),
)
case(
    "two groups in two orders, not waited between",
    doc(
        [AR(group="a", handle=1), AR(group="b"), ev("wait", handle=1)],
        [AR(group="b", handle=1), AR(group="a"), ev("wait", handle=1)],
        groups=AB,
        backend="nccl",
    ),
    progress={"stream": "ok", "serial": "deadlock"},
)
case(
    "two streams",
    doc(
        [AR(group="a", stream="s"), AR(group="b")],
        [AR(group="b"), AR(group="a", stream="s")],
        groups=AB,
        backend="nccl",
    ),
    progress={"stream": "ok", "serial": "deadlock", "rendezvous": "deadlock"},
)
case(
    "two streams that wait for each other",
    doc(
        [AR(group="a", stream="s"), ev("stream_wait", on="s"), AR(group="b")],
        [AR(group="b"), ev("stream_wait", on="main", stream="s"), AR(group="a", stream="s")],
        groups=AB,
        backend="nccl",
    ),
    ("deadlock", 0, 0),
)
case(
    "a cycle of three",
    doc([recv(2), send(1)], [recv(0), send(2)], [recv(1), send(0)]),
    ("deadlock", 1, 0),
)
case(
    "never waited for",
    doc([AR(handle="h")], [AR(handle="h"), ev("wait", handle="h")], backend="gloo"),
    ("unwaited", 0, 0),
)
case(
    "waited too early",
    doc([ev("wait", handle="h"), AR(handle="h")], [AR()], backend="gloo"),
    ("wait-before-post", 0, 0),
)
case("an unknown handle", doc([ev("wait", handle="x"), AR()], [AR()]), ("wait-before-post", 0, 0))
case(
    "several handles in a wait",
    doc([AR(handle=1), AR(handle=2), ev("wait", handle=[1, 2])], [AR(), AR()], backend="gloo"),
)
MESH = {"dp": 2, "pp": 2}
case(
    "programs and a mesh",
    doc(
        "first",
        "last",
        "first",
        "last",
        mesh=MESH,
        programs={
            "first": [ev("F", stage=0, mb=0), send({"pp": 1}), AR(group="dp")],
            "last": [recv({"pp": -1}), ev("F", stage=1, mb=0), AR(group=["dp"])],
        },
        pipeline={"stages": 2, "microbatches": 1},
    ),
)
case(
    "programs with a fault",
    doc(
        "first",
        "last",
        "first",
        "last",
        mesh=MESH,
        programs={
            "first": [ev("F", stage=0, mb=0), send({"pp": 1}, numel=3), AR(group="dp")],
            "last": [recv({"pp": -1}, numel=4), ev("F", stage=1, mb=0), AR(group="dp")],
        },
    ),
    ("size-mismatch", 1, 0),
)
case(
    "a ring along an axis",
    doc(
        "p",
        "p",
        "p",
        mesh={"cp": 3},
        programs={"p": [ev("batch", ops=[send({"cp": 1}), recv({"cp": -1})])]},
        backend="nccl",
    ),
)
case(
    "a ring along an axis, one after the other",
    doc(
        "p",
        "p",
        "p",
        mesh={"cp": 3},
        programs={"p": [send({"cp": 1}), recv({"cp": -1})]},
        backend="nccl",
    ),
    ("deadlock", 0, 0),
)
case(
    "a pipeline lacks a microbatch",
    doc(
        [ev("F", stage=0, mb=0), ev("F", stage=0, mb=1), send(1), send(1)],
        [recv(0), ev("F", stage=1, mb=0), recv(0)],
        pipeline={"stages": 2, "microbatches": 2},
    ),
    ("missing-microbatch", 1, None),
)
case(
    "all of a pipeline is outside",
    doc([ev("F", stage=3, mb=0)], pipeline={"stages": 1, "microbatches": 1}),
    ("out-of-range", 0, 0),
    ("missing-microbatch", 0, None),
)
case(
    "very many microbatches are missing",
    doc([ev("F", stage=0, mb=0)], pipeline={"stages": 1, "microbatches": 573320}),
    ("missing-microbatch", 0, None),
)
case(
    "activations",
    doc([ev("F", stage=0, mb=m) for m in range(3)], pipeline={"stages": 1, "microbatches": 3}),
    ("out-of-range", 0, 2),
    args=("--max-in-flight", "2"),
)


# Buffers: who uses them while an operation does.
def work(name="w", **more):
    return ev("compute", name=name, **more)


def pair(mine, theirs, backend="nccl"):
    return doc(mine, theirs, backend=backend)


WAIT = ev("wait", handle="h")
case(
    "read while it is received",
    pair([send(1)], [recv(0, buffer="a", handle="h"), work(reads=["a"]), WAIT]),
    ("read-in-flight", 1, 1),
)
case(
    "read behind the wait",
    pair([send(1)], [recv(0, buffer="a", handle="h"), WAIT, work(reads=["a"])]),
)
case(
    "waited for on another stream",
    pair(
        [send(1)],
        [recv(0, buffer="a", handle="h"), ev("wait", handle="h", stream="s"), work(reads=["a"])],
    ),
    ("read-in-flight", 1, 2),
)
case(
    "waited for on another stream, which is waited for",
    pair(
        [send(1)],
        [
            recv(0, buffer="a", handle="h"),
            ev("wait", handle="h", stream="s"),
            ev("stream_wait", on="s"),
            work(reads=["a"]),
        ],
    ),
)
case(
    "another part of the buffer",
    pair(
        [send(1)],
        [
            recv(0, buffer={"id": "a", "at": 0, "bytes": 8}, handle="h"),
            work(writes=[{"id": "a", "at": 8, "bytes": 8}]),
            WAIT,
        ],
    ),
)
case(
    "an overlapping part",
    pair(
        [send(1)],
        [
            recv(0, buffer={"id": "a", "at": 0, "bytes": 9}, handle="h"),
            work(writes=[{"id": "a", "at": 8, "bytes": 8}]),
            WAIT,
        ],
    ),
    ("two-writers", 1, 1),
)
case("two readers", pair([send(1, buffer="a", handle="h"), work(reads=["a"]), WAIT], [recv(0)]))
case(
    "two streams write",
    doc([work(writes=["a"]), work(writes=["a"], stream="s")]),
    ("two-writers", 0, 1),
)
case(
    "two streams on gloo", doc([work(writes=["a"]), work(writes=["a"], stream="s")], backend="gloo")
)
case(
    "freed and used",
    doc([work(writes=["a"]), ev("free", buffer="a"), work(reads=["a"])]),
    ("use-after-free", 0, 2),
)
case(
    "freed, allocated, used",
    doc([ev("free", buffer="a"), ev("alloc", buffer="a"), work(writes=["a"])]),
)
case(
    "freed in flight",
    pair([send(1, buffer="a", handle="h"), ev("free", buffer="a"), WAIT], [recv(0)]),
    ("free-in-flight", 0, 1),
)
case(
    "the queue is in order",
    pair(
        [
            AR(buffer="a", handle=1),
            AR(buffer="a", handle=2),
            ev("wait", handle=2),
            work(reads=["a"]),
        ],
        [AR(), AR()],
    ),
)
case(
    "gloo has no queue",
    pair(
        [AR(buffer="a", handle=1), AR(buffer="a", handle=2), ev("wait", handle=[1, 2])],
        [AR(), AR()],
        backend="gloo",
    ),
    ("read-in-flight", 0, 1),
)
case(
    "in a batch, sent and received in one buffer",
    doc(*[[ev("batch", ops=[send(1 - r, buffer="a"), recv(1 - r, buffer="a")])] for r in (0, 1)]),
    ("write-in-flight", 0, 0),
    ("write-in-flight", 1, 0),
)
case(
    "received twice, read once",
    pair([send(1), send(1)], [recv(0, buffer="a"), recv(0, buffer="a"), work(reads=["a"])]),
    ("lost-result", 1, 1),
)
case(
    "a root only sends",
    doc(
        [ev("broadcast", root=0, buffer="a", handle="h"), work(reads=["a"]), WAIT],
        [ev("broadcast", root=0, buffer="a", handle="h"), WAIT, work(reads=["a"])],
        backend="nccl",
    ),
)
case(
    "not the root",
    doc(
        [ev("broadcast", root=0, buffer="a")],
        [ev("broadcast", root=0, buffer="a", handle="h"), work(reads=["a"]), WAIT],
        backend="nccl",
    ),
    ("read-in-flight", 1, 1),
)

# Values: what a buffer holds is what its reader needs, over several ranks.
case(
    "a value passed on",
    doc(
        [work(makes={"a": "x"}), send(1, buffer="a")],
        [recv(0, buffer="b"), send(2, buffer="b")],
        [recv(1, buffer="c"), work(needs={"c": "x"})],
    ),
)
case(
    "another value passed on",
    doc(
        [work(makes={"a": "y"}), send(1, buffer="a")],
        [recv(0, buffer="b"), send(2, buffer="b")],
        [recv(1, buffer="c"), work(needs={"c": "x"})],
    ),
    ("value-mismatch", 2, 0),
)
case(
    "another value of one's own",
    doc([work(makes={"a": "x"}), work(needs={"a": "y"})]),
    ("value-mismatch", 0, 1),
)
case(
    "overwritten with something unknown",
    doc([work(makes={"a": "x"}), work(writes=["a"]), work(needs={"a": "y"})]),
)

MALFORMED = [
    b"",
    b"{",
    b"[]",
    b"{}",
    b'{"format": "isomer-events"}',
    b'{"format": "x", "version": 1, "ranks": []}',
    b'{"format": "isomer-events", "version": 2, "ranks": [[]]}',
    b'{"format": "isomer-events", "version": 1, "ranks": []}',
    b'{"format": "isomer-events", "version": 1, "ranks": [[]]} x',
    b'{"format": "isomer-events", "version": 1, "world": 2, "ranks": [[]]}',
    b"\x80\x04.",
    b"0F0,1G1\n",
    b"0F0,(1F0)OVER\n",
    b"F0\n",
    b"99999999F0\n",
    b"0F\n",
    b"hello\n",
]
BAD_EVENTS = [
    "{}",
    '{"op": "sned", "peer": 0}',
    '{"op": "send"}',
    '{"op": "send", "peer": -1}',
    '{"op": "send", "peer": 0, "peer": 0}',
    '{"op": "send", "peer": 1e3}',
    '{"op": "wait"}',
    '{"op": "batch"}',
    '{"op": "barrier", "ops": []}',
    '{"op": "F", "stage": 1}',
    '{"op": "barrier", "group": "none"}',
    '{"op": "send", "peer": {"xx": 1}}',
    '{"op": "barrier", "cost": -1}',
    '{"op": "barrier", "nothing": 1}',
    '{"op": "batch", "ops": [{"op": "F", "stage": 0, "mb": 0}]}',
    "7",
    '"p"',
    "[]",
    '{"op": "barrier", "numel": 99999999999999999999}',
    '{"op": "barrier", "handle": ""}',
    '{"op": "barrier", "reads": {"at": 1}}',
]


def run_case(isomer, where, name, d, found, args, progress):
    path = os.path.join(where, "x.json")
    with open(path, "w") as f:
        json.dump(d, f)
    x = Lint(isomer, path, *args)
    if not check(x.status == (1 if found else 0), "%s: status %d: %s", name, x.status, x.text):
        return
    errors = [f for f in x.report["findings"] if f["severity"] == "error"]
    check(
        sorted(f["kind"] for f in errors) == sorted(k for k, _, _ in found),
        "%s: found %s",
        name,
        x.kinds(),
    )
    for kind, rank, position in found:
        check(
            any(
                f["kind"] == kind
                and rank in f["ranks"]
                and (position is None or [rank, position] in f["events"])
                for f in errors
            ),
            "%s: %s is not at rank %s event %s: %s",
            name,
            kind,
            rank,
            position,
            x.report["findings"],
        )
    check(
        x.last.startswith("isomer: FINDINGS %d: " % len(found) if found else "isomer: CLEAN"),
        "%s: %s",
        name,
        x.last,
    )
    for model, word in (progress or {}).items():
        check(
            x.report["progress"][model] == word,
            "%s: under %s %s",
            name,
            model,
            x.report["progress"][model],
        )
    check(STATUS[x.report["verdict"]] == x.status, "%s: verdict %s", name, x.report["verdict"])


def malformed(isomer, where):
    texts = list(MALFORMED) + [
        b'{"format": "isomer-events", "version": 1, "ranks": [[%s]]}' % e.encode()
        for e in BAD_EVENTS
    ]
    whole = json.dumps(next(d for n, d, *_ in CASES if n == "a batch with one handle")).encode()
    texts += [whole[:i] for i in range(len(whole))]
    for text in texts:
        path = os.path.join(where, "bad")
        with open(path, "wb") as f:
            f.write(text)
        x = Lint(isomer, path)
        check(
            x.status == 2 and x.text.count("\n") == 1 and x.text.startswith("isomer: "),
            "malformed %r: %d %s",
            text[-80:],
            x.status,
            x.text,
        )


def other_inputs(isomer, where):
    """Folders, what is not there, two files that do not go together."""
    path = os.path.join(where, "one.csv")
    with open(path, "w") as f:
        f.write("0F0,0B0\n")
    check(Lint(isomer, path).status == 0, "a table of one rank")
    for args, says in (
        ([where], "a folder that is no capture"),
        ([os.path.join(where, "none")], "No such file"),
        ([path, path], "stands alone"),
        ([path, "--progress", "fast"], "no progress model"),
        ([path, "--stages", "0"], "--stages takes a number"),
        ([path, "--dot"], "unknown option"),
        ([], "an input is needed"),
    ):
        x = Lint(isomer, *args)
        check(x.status == 2 and x.text.count("\n") == 1 and says in x.text, "%s: %s", args, x.text)
    x = Lint(isomer, path, "--stages", "2")
    check(x.kinds() == ["missing-microbatch"], "a stage that is said to be there: %s", x.text)
    x = Lint(isomer, path, "--microbatches", "3")
    check(
        x.kinds() == ["missing-microbatch"] * 4,
        "microbatches that are said to be there: %s",
        x.text,
    )


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    p.add_argument("--only", default="")
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as where:
        for name, *rest in CASES:
            if o.only in name:
                run_case(o.isomer, where, name, *rest)
        malformed(o.isomer, where)
        other_inputs(o.isomer, where)
    finish()


main()
