"""Kinds of mutation of correct event programs. Each takes a program and a random generator, changes
it
in place, and returns what must be found: kinds of findings, any of which is right, and places, one
of which must be among the finding's events. None: the program has no place for it."""

import copy
import functools

MUTATIONS = {}
COLLECTIVES = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "reduce",
    "barrier",
)


def mutation(f):
    MUTATIONS[f.__name__] = f
    return f


def places(d, fits):
    """Where an event fits, as (rank, position); of a batch's operations with their index."""
    out = []
    for r, events in enumerate(d["ranks"]):
        for i, e in enumerate(events):
            if fits(e):
                out.append((r, i, None))
            out += [(r, i, k) for k, o in enumerate(e.get("ops", ())) if fits(o)]
    return out


def pick(d, rng, fits):
    found = places(d, fits)
    if not found:
        return None, None
    r, i, k = rng.choice(found)
    e = d["ranks"][r][i]
    return (r, i), e if k is None else e["ops"][k]


def alone(d, rng, fits):
    """One that is not in a batch."""
    found = [p for p in places(d, fits) if p[2] is None]
    if not found:
        return None, None
    r, i, _ = rng.choice(found)
    return (r, i), d["ranks"][r][i]


def at_event(fits, choose=alone):
    """Makes a mutation of what changes a program at one of its events that fit."""

    def keep(change):
        @functools.wraps(change)
        def mutate(d, rng):
            at, e = choose(d, rng, fits)
            return change(d, at, e) if e else None

        return mutate

    return keep


def is_op(*ops):
    return lambda e: e["op"] in ops


def with_key(key, *ops):
    return lambda e: key in e and (not ops or e["op"] in ops)


def other_side(d, at, e):
    """The event that meets a message; of a program whose messages between two ranks are told
    apart."""
    r, peer = at[0], e["peer"]
    me = lambda x: (x.get("buffer"), x.get("handle"), x.get("mb"), x.get("tag"))  # noqa: E731
    mine = [
        x
        for x in flat(d["ranks"][r])
        if x[1]["op"] == e["op"] and x[1]["peer"] == peer and x[1].get("tag") == e.get("tag")
    ]
    k = [me(x[1]) for x in mine].index(me(e))
    op = "recv" if e["op"] == "send" else "send"
    theirs = [
        x
        for x in flat(d["ranks"][peer])
        if x[1]["op"] == op and x[1]["peer"] == r and x[1].get("tag") == e.get("tag")
    ]
    return peer, theirs[k][0]


def flat(events):
    for i, e in enumerate(events):
        yield i, e
        for o in e.get("ops", ()):
            yield i, o


def waits_for(d, at, handle):
    return [
        i for i, e in enumerate(d["ranks"][at[0]]) if e["op"] == "wait" and e["handle"] == handle
    ]


def drop(d, at):
    e = d["ranks"][at[0]].pop(at[1])
    if "handle" in e and e["op"] != "wait":
        w = waits_for(d, at, e["handle"])
        if w:
            d["ranks"][at[0]].pop(w[0])
    return e


# ---- messages ----


@mutation
def send_dropped(d, rng):
    at, e = alone(d, rng, is_op("send"))
    if not e or len(d["ranks"]) < 2:
        return None
    other = other_side(d, at, e)
    drop(d, at)
    return ["unmatched-recv"], [other]


@mutation
@at_event(is_op("recv"))
def recv_dropped(d, at, e):
    other = other_side(d, at, e)
    drop(d, at)
    return ["unmatched-send"], [other]


@mutation
def send_in_batch_dropped(d, rng):
    at, e = pick(d, rng, lambda e: e["op"] == "batch")
    if not e:
        return None
    k = rng.randrange(2)
    o = e["ops"][k]
    other = other_side(d, at, o)
    e["ops"].pop(k)
    return ["unmatched-recv" if o["op"] == "send" else "unmatched-send"], [other]


def doubled(d, rng, op):
    at, e = alone(d, rng, is_op(op))
    if not e:
        return None
    again = copy.deepcopy(e)
    if "handle" in e:
        again["handle"] = e["handle"] + "again"
        w = waits_for(d, at, e["handle"])
        d["ranks"][at[0]].insert(w[0] + 1, {"op": "wait", "handle": again["handle"]})
    d["ranks"][at[0]].insert(at[1] + 1, again)
    return ["unmatched-" + op], [at, (at[0], at[1] + 1)]


@mutation
def send_doubled(d, rng):
    return doubled(d, rng, "send")


@mutation
def recv_doubled(d, rng):
    return doubled(d, rng, "recv")


def peer_changed(d, rng, op):
    if len(d["ranks"]) < 3:
        return None
    at, e = pick(d, rng, is_op(op))
    if not e:
        return None
    other = other_side(d, at, e)
    e["peer"] = rng.choice([r for r in range(len(d["ranks"])) if r not in (at[0], e["peer"])])
    return ["wrong-peer"], [at, other]


@mutation
def send_to_another(d, rng):
    return peer_changed(d, rng, "send")


@mutation
def recv_from_another(d, rng):
    return peer_changed(d, rng, "recv")


@mutation
@at_event(is_op("send", "recv"), pick)
def peer_outside(d, at, e):
    e["peer"] = len(d["ranks"]) + 3
    return ["out-of-range"], [at]


def changed(key, value, kinds, *ops):
    def f(d, rng):
        at, e = pick(d, rng, with_key(key, *ops))
        if not e:
            return None
        e[key] = value(e[key]) if callable(value) else value
        return kinds, [at]

    return f


MUTATIONS["send_smaller"] = changed("numel", lambda n: n - 1, ["size-mismatch"], "send")
MUTATIONS["recv_larger"] = changed("numel", lambda n: 2 * n, ["size-mismatch"], "recv")
MUTATIONS["send_dtype"] = changed("dtype", "float16", ["dtype-mismatch"], "send")
MUTATIONS["recv_dtype"] = changed("dtype", "float16", ["dtype-mismatch"], "recv")
MUTATIONS["send_tag"] = changed("tag", 77, ["tag-mismatch"], "send")
MUTATIONS["recv_tag"] = changed("tag", 77, ["tag-mismatch"], "recv")


@mutation
def tags_crossed(d, rng):
    """Two messages whose tags say another order than that in which NCCL brings them."""
    if d.get("backend") != "nccl":
        return None
    channels = {}
    for op in ("send", "recv"):
        for r, i, k in places(d, lambda e: e["op"] == op and isinstance(e["peer"], int)):
            e = d["ranks"][r][i] if k is None else d["ranks"][r][i]["ops"][k]
            ends = (r, e["peer"]) if op == "send" else (e["peer"], r)
            both = channels.setdefault(ends + (e.get("group"),), {"send": [], "recv": []})
            both[op].append(((r, i), e))
    fit = [c for c in channels.values() if len(c["send"]) == len(c["recv"]) > 1]
    if not fit:
        return None
    c = rng.choice(fit)
    first, second = sorted(rng.sample(range(len(c["send"])), 2))
    for op, tags in (("send", (101, 102)), ("recv", (102, 101))):
        for at, tag in zip((first, second), tags):
            c[op][at][1]["tag"] = tag
    return ["tag-mismatch"], [c["recv"][first][0]]


@mutation
@at_event(is_op("send", "recv"), pick)
def message_group(d, at, e):
    d.setdefault("groups", {})["pair"] = sorted({at[0], e["peer"]})
    e["group"] = "pair"
    return ["group-mismatch"], [at]


def exchanged(d, rng, op):
    """Two messages of one peer in the other order; their buffers and microbatches tell."""
    at, e = alone(d, rng, lambda e: e["op"] == op and "mb" in e)
    if not e:
        return None
    later = [
        i
        for i in range(at[1] + 1, len(d["ranks"][at[0]]))
        if d["ranks"][at[0]][i]["op"] == op and d["ranks"][at[0]][i]["peer"] == e["peer"]
    ]
    if not later:
        return None
    f = d["ranks"][at[0]][later[0]]
    for key in ("buffer", "mb"):
        e[key], f[key] = f[key], e[key]
    return ["value-mismatch"], [at, (at[0], later[0])]


@mutation
def sends_exchanged(d, rng):
    return exchanged(d, rng, "send")


@mutation
def recvs_exchanged(d, rng):
    return exchanged(d, rng, "recv")


@mutation
@at_event(lambda e: e["op"] == "send" and "mb" in e)
def other_buffer_sent(d, at, e):
    kind = e["buffer"].rstrip("0123456789")
    others = [
        x["buffer"]
        for x in d["ranks"][at[0]]
        if x["op"] == "send" and x["buffer"] != e["buffer"] and x["buffer"].startswith(kind)
    ]
    if not others:
        return None
    where = [
        i
        for i, x in enumerate(d["ranks"][at[0]])
        if x["op"] in "FB" and others[0] in x.get("makes", {})
    ]
    if where[0] > at[1]:
        return None  # it would send what is not there yet, of which nothing is known
    e["buffer"] = others[0]
    user = {"out": "act", "gin": "grad"}[kind] + str(e["mb"])
    reader = [
        (e["peer"], i) for i, x in enumerate(d["ranks"][e["peer"]]) if user in x.get("needs", {})
    ]
    return ["value-mismatch"], [at, other_side_of_buffer(d, e["peer"], user)] + reader


def other_side_of_buffer(d, rank, buffer):
    return rank, next(
        i for i, x in enumerate(d["ranks"][rank]) if x["op"] == "recv" and x["buffer"] == buffer
    )


@mutation
def needs_another_value(d, rng):
    at, e = alone(d, rng, lambda e: any(not b.startswith("batch") for b in e.get("needs", {})))
    if not e:
        return None
    b = rng.choice([b for b in e["needs"] if not b.startswith("batch")])
    e["needs"][b] += "?"
    return ["value-mismatch"], [at]


# ---- collectives ----


def group_of(d, e):
    return d.get("groups", {}).get(e.get("group"), list(range(len(d["ranks"]))))


def same_collective(d, at, e):
    """The other members' events of a collective."""
    k = [
        i
        for i, x in enumerate(d["ranks"][at[0]])
        if x["op"] in COLLECTIVES and x.get("group") == e.get("group")
    ].index(at[1])
    out = []
    for r in group_of(d, e):
        if r != at[0]:
            out.append(
                (
                    r,
                    [
                        i
                        for i, x in enumerate(d["ranks"][r])
                        if x["op"] in COLLECTIVES and x.get("group") == e.get("group")
                    ][k],
                )
            )
    return out


@mutation
def collective_dropped(d, rng):
    at, e = alone(d, rng, is_op(*COLLECTIVES))
    if not e or len(group_of(d, e)) < 2:
        return None
    others = same_collective(d, at, e)
    drop(d, at)
    return ["missing-collective"], others


@mutation
def collective_doubled(d, rng):
    at, e = alone(d, rng, lambda e: e["op"] in COLLECTIVES and "handle" not in e)
    if not e or len(group_of(d, e)) < 2:
        return None
    d["ranks"][at[0]].insert(at[1], copy.deepcopy(e))
    return ["missing-collective"], [at, (at[0], at[1] + 1)]


@mutation
def collective_kind(d, rng):
    at, e = alone(d, rng, is_op(*COLLECTIVES))
    if not e or len(group_of(d, e)) < 2:
        return None
    e["op"] = "gather" if e["op"] != "gather" else "scatter"
    return ["collective-mismatch"], [at]


@mutation
def collectives_exchanged(d, rng):
    def neighbours(i, events):
        here = [
            k
            for k in range(i + 1, len(events))
            if events[k]["op"] in COLLECTIVES and events[k].get("group") == events[i].get("group")
        ]
        return here[0] if here else None

    found = []
    for r, events in enumerate(d["ranks"]):
        for i, e in enumerate(events):
            k = neighbours(i, events) if e["op"] in COLLECTIVES and "handle" not in e else None
            if (
                k
                and "handle" not in events[k]
                and events[k]["op"] != e["op"]
                and len(group_of(d, e)) > 1
            ):
                found.append((r, i, k))
    if not found:
        return None
    r, i, k = rng.choice(found)
    # The collectives change places, and their buffers stay: only who meets whom is at fault.
    keys = [
        x
        for x in set(d["ranks"][r][i]) | set(d["ranks"][r][k])
        if x not in ("buffer", "out", "handle", "stream")
    ]
    a, b = d["ranks"][r][i], d["ranks"][r][k]
    for x in keys:
        u, v = a.pop(x, None), b.pop(x, None)
        a.update({x: v} if v is not None else {})
        b.update({x: u} if u is not None else {})
    return ["collective-mismatch"], [(r, i)]


MUTATIONS["another_reduction"] = changed("reduce", "prod", ["reduce-mismatch"])
MUTATIONS["another_root"] = changed("root", lambda n: 1 - min(n, 1), ["root-mismatch"])
MUTATIONS["root_outside"] = changed("root", 99, ["root-mismatch"])
MUTATIONS["collective_size"] = changed(
    "numel",
    lambda n: n + 1,
    ["size-mismatch"],
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "reduce",
)
MUTATIONS["collective_dtype"] = changed("dtype", "float16", ["dtype-mismatch"], *COLLECTIVES)
MUTATIONS["result_size"] = changed(
    "out_numel", lambda n: n + 1, ["size-mismatch"], "all_gather", "reduce_scatter"
)
MUTATIONS["split_sum"] = changed("in_splits", lambda v: [v[0] + 1] + v[1:], ["split-mismatch"])
MUTATIONS["split_count"] = changed("out_splits", lambda v: v + [0], ["split-mismatch"])


@mutation
@at_event(with_key("in_splits"), pick)
def split_moved(d, at, e):
    e["in_splits"] = [e["in_splits"][0] + 1, e["in_splits"][1] - 1] + e["in_splits"][2:]
    return ["split-mismatch"], [at]


@mutation
def collective_group(d, rng):
    at, e = alone(
        d, rng, lambda e: e["op"] in COLLECTIVES and e.get("group") and len(group_of(d, e)) > 1
    )
    if not e:
        return None
    others = [g for g in d["groups"] if at[0] in d["groups"][g] and g != e["group"]]
    if not others:
        return None
    e["group"] = rng.choice(others)
    return ["group-mismatch"], [at]


@mutation
def group_of_others(d, rng):
    at, e = alone(d, rng, lambda e: e["op"] in COLLECTIVES)
    others = [g for g in d.get("groups", {}) if e and at[0] not in d["groups"][g]]
    if not others or len(group_of(d, e)) < 2:
        return None
    e["group"] = rng.choice(others)
    return ["group-mismatch"], [at]


# ---- handles ----


@mutation
def wait_dropped(d, rng):
    kinds = ("recv",) + COLLECTIVES + (("batch",) if d.get("backend") != "nccl" else ())
    found = [
        (r, i, w[0])
        for r, i, k in places(d, lambda e: "handle" in e and e["op"] in kinds)
        if k is None
        for w in [waits_for(d, (r, i), d["ranks"][r][i]["handle"])]
        if w
    ]
    if not found:
        return None
    r, i, w = rng.choice(found)
    d["ranks"][r].pop(w)
    return ["unwaited", "unwaited-implied", "read-in-flight"], [(r, i)]


@mutation
@at_event(lambda e: e["op"] == "send" and "handle" in e)
def wait_for_send_dropped(d, at, e):
    d["ranks"][at[0]].pop(waits_for(d, at, e["handle"])[0])
    return ["unwaited-send", "unwaited-implied", "write-in-flight"], [at]


@mutation
@at_event(lambda e: "handle" in e and e["op"] != "wait")
def wait_too_early(d, at, e):
    w = waits_for(d, at, e["handle"])[0]
    d["ranks"][at[0]].insert(at[1], d["ranks"][at[0]].pop(w))
    return ["wait-before-post"], [at]


@mutation
@at_event(is_op("wait"))
def wait_twice(d, at, e):
    d["ranks"][at[0]].insert(at[1] + 1, copy.deepcopy(e))
    return ["double-wait"], [(at[0], at[1] + 1)]


@mutation
@at_event(is_op("wait"))
def unknown_handle(d, at, e):
    d["ranks"][at[0]].insert(at[1], {"op": "wait", "handle": "nobody's"})
    return ["wait-before-post"], [at]


# ---- races ----


def first_use(d, r, handle, keys):
    """The operation of a handle, its wait, and the first event behind the wait that uses its buffer
    so."""
    events = d["ranks"][r]
    post = next(i for i, e in enumerate(events) if e.get("handle") == handle and e["op"] != "wait")
    wait = next(
        (i for i, e in enumerate(events) if e.get("handle") == handle and e["op"] == "wait"), None
    )
    o = events[post]
    for i in range(wait + 1 if wait is not None else len(events), len(events)):
        e = events[i]
        used = set().union(
            *[set(e.get(k, ())) if not isinstance(e.get(k), str) else {e[k]} for k in keys]
        )
        if (o.get("out") or o.get("buffer")) in used and e["op"] in ("compute", "F", "B"):
            return post, wait, i
    return None


def ends_otherwise(d, r, post, wait, use):
    """On NCCL a later operation of the same queue that is waited for says that this one has ended
    too."""
    events = d["ranks"][r]
    waited = {e["handle"] for e in events[:use] if e["op"] == "wait" and e is not events[wait]}
    return d.get("backend") not in ("gloo", "mpi") and any(
        e["op"] in COLLECTIVES + ("send", "recv")
        and e.get("group") == events[post].get("group")
        and ("handle" not in e or e["handle"] in waited)
        for e in events[post + 1 : use]
    )


def posted(d, rng, ops, keys):
    found = []
    for r, events in enumerate(d["ranks"]):
        for e in events:
            if e["op"] in ops and "handle" in e:
                x = first_use(d, r, e["handle"], keys)
                if x and not ends_otherwise(d, r, *x):
                    found.append((r,) + x)
    return rng.choice(found) if found else None


@mutation
def waits_behind_its_reader(d, rng):
    x = posted(d, rng, ("recv",) + COLLECTIVES, ("reads", "needs"))
    if not x:
        return None
    r, post, wait, use = x
    d["ranks"][r].insert(use, d["ranks"][r].pop(wait))
    return ["read-in-flight"], [(r, use - 1)]


@mutation
def waits_on_another_stream(d, rng):
    if d.get("backend") in ("gloo", "mpi"):
        return None
    x = posted(d, rng, ("recv",) + COLLECTIVES, ("reads", "needs"))
    if not x:
        return None
    r, post, wait, use = x
    d["ranks"][r][wait]["stream"] = "elsewhere"
    return ["read-in-flight"], [(r, use)]


def scratched(op, kind):
    @at_event(lambda e: e["op"] == op and "handle" in e)
    def written(d, at, e):
        scratch = {"op": "compute", "name": "scratch", "writes": [e["buffer"]]}
        d["ranks"][at[0]].insert(at[1] + 1, scratch)
        return [kind], [(at[0], at[1] + 1)]

    return written


MUTATIONS["writes_what_is_sent"] = scratched("send", "write-in-flight")
MUTATIONS["writes_what_is_received"] = scratched("recv", "two-writers")


@mutation
@at_event(lambda e: e["op"] == "recv" and "handle" in e)
def writes_a_part(d, at, e):
    d["ranks"][at[0]].insert(
        at[1] + 1,
        {"op": "compute", "name": "scratch", "writes": [{"id": e["buffer"], "at": 4, "bytes": 4}]},
    )
    return ["two-writers"], [(at[0], at[1] + 1)]


@mutation
@at_event(lambda e: e["op"] in ("send", "recv", "reduce_scatter") and "handle" in e)
def frees_what_is_in_flight(d, at, e):
    b = e["buffer"]
    if any(
        b in (x.get("buffer"), x.get("out"))
        or b in x.get("reads", ())
        or b in x.get("writes", ())
        or b in x.get("needs", {})
        for i, x in enumerate(d["ranks"][at[0]])
        if i > at[1]
    ):
        return None  # it would be used when freed, too
    d["ranks"][at[0]].insert(at[1] + 1, {"op": "free", "buffer": b})
    return ["free-in-flight"], [(at[0], at[1] + 1)]


@mutation
@at_event(is_op("free"))
def freed_before_its_last_use(d, at, e):
    events = d["ranks"][at[0]]
    use = max(i for i in range(at[1]) if e["buffer"] in events[i].get("reads", ()))
    events.insert(use, events.pop(at[1]))
    return ["use-after-free"], [(at[0], use + 1)]


@mutation
def result_overwritten(d, rng):
    x = posted(d, rng, ("recv",), ("reads", "needs"))
    if not x or not d["ranks"][x[0]][x[1]].get("out", d["ranks"][x[0]][x[1]].get("buffer")):
        return None
    r, post, wait, use = x
    if d["ranks"][r][post].get("makes"):
        return None
    o = d["ranks"][r][post]
    again = dict(o, handle=o["handle"] + "again")
    peer, i = other_side(d, (r, post), o)
    if d["ranks"][peer][i]["op"] != "send":
        return None
    there = d["ranks"][peer][i]
    d["ranks"][r][wait + 1 : wait + 1] = [again, {"op": "wait", "handle": again["handle"]}]
    mine = d["ranks"][peer]
    mine.insert(i + 1, dict(there, handle=there["handle"] + "again"))
    w = next(k for k, e in enumerate(mine) if e["op"] == "wait" and e["handle"] == there["handle"])
    mine.insert(w + 1, {"op": "wait", "handle": there["handle"] + "again"})
    shift = 0 if peer != r else 2
    return ["lost-result"], [(r, wait + 1 + shift)]


@mutation
@at_event(is_op("stream_wait"))
def streams_unordered(d, at, e):
    after = next(
        i
        for i in range(at[1] + 1, len(d["ranks"][at[0]]))
        if d["ranks"][at[0]][i].get("stream") == e["stream"]
    )
    d["ranks"][at[0]].pop(at[1])
    return ["read-in-flight", "write-in-flight", "two-writers"], [(at[0], after - 1)]


# ---- schedules ----


def step_dropped(op):
    @at_event(is_op(op))
    def dropped(d, at, e):
        d["ranks"][at[0]].pop(at[1])
        return ["missing-microbatch"], [
            (at[0], i) for i, x in enumerate(d["ranks"][at[0]]) if x.get("mb") == e["mb"]
        ]

    return dropped


MUTATIONS["forward_dropped"] = step_dropped("F")
MUTATIONS["backward_dropped"] = step_dropped("B")


@mutation
@at_event(is_op("F", "B"))
def computed_twice(d, at, e):
    d["ranks"][at[0]].insert(at[1] + 1, copy.deepcopy(e))
    return ["duplicate-compute"], [(at[0], at[1] + 1)]


@mutation
@at_event(lambda e: e["op"] == "B")
def backward_first(d, at, e):
    """On the last stage, where nothing but the forward pass keeps it."""
    events = d["ranks"][at[0]]
    f = next(i for i, x in enumerate(events) if x["op"] == "F" and x["mb"] == e["mb"])
    events.insert(f, events.pop(at[1]))
    return ["backward-before-forward"], [(at[0], f)]


MUTATIONS["stage_of_another"] = changed(
    "stage", lambda s: 1 - min(s, 1), ["stage-on-two-ranks", "duplicate-compute"], "F", "B"
)
MUTATIONS["stage_outside"] = changed("stage", 40, ["out-of-range"], "F", "B")
MUTATIONS["microbatch_outside"] = changed("mb", 40, ["out-of-range"], "F", "B")


@mutation
@at_event(is_op("B"))
def weight_gradient_missing(d, at, e):
    e["op"] = "I"
    return ["missing-weight-grad"], [at]


@mutation
@at_event(is_op("B"))
def weight_gradient_first(d, at, e):
    e["op"] = "I"
    d["ranks"][at[0]].insert(at[1], {"op": "W", "stage": e["stage"], "mb": e["mb"]})
    return ["weight-before-input"], [at]


# ---- hangs ----


@mutation
def batch_undone(d, rng):
    """A batch of operations is taken apart: both sides send first, then receive."""
    if not any(e["op"] == "batch" for events in d["ranks"] for e in events):
        return None
    k = rng.choice([e["handle"] for e in d["ranks"][0] if e["op"] == "batch"])
    peer = next(e for e in d["ranks"][0] if e.get("handle") == k)["ops"][0]["peer"]
    out = []
    for r in (0, peer):
        events = d["ranks"][r]
        i = next(i for i, e in enumerate(events) if e.get("handle") == k)
        ops = sorted(events[i]["ops"], key=lambda e: e["op"] == "recv")
        events[i : i + 1] = ops
        events.pop(next(i for i, e in enumerate(events) if e["op"] == "wait" and e["handle"] == k))
        out += [(r, i), (r, i + 1)]
    return ["deadlock"], out


@mutation
def groups_exchanged(d, rng):
    """Two blocking collectives of different groups in the other order on one rank."""
    found = []
    for r, events in enumerate(d["ranks"]):
        for i in range(len(events) - 1):
            e = events[i]
            if e["op"] in COLLECTIVES and "handle" not in e and len(group_of(d, e)) > 1:
                found += [
                    (r, i, k)
                    for k in range(i + 1, len(events))
                    if events[k]["op"] in COLLECTIVES
                    and "handle" not in events[k]
                    and events[k].get("group") != e.get("group")
                    and len(group_of(d, events[k])) > 1
                    and not any(
                        x["op"] in COLLECTIVES
                        and x.get("group") in (e.get("group"), events[k].get("group"))
                        for x in events[i + 1 : k]
                    )
                    and set(group_of(d, e)) & set(group_of(d, events[k])) - {r}
                ]
    if not found:
        return None
    r, i, k = rng.choice(found)
    events = d["ranks"][r]
    for x in events[i : k + 1]:  # only the order is at fault
        for key in ("buffer", "out", "reads", "writes"):
            x.pop(key, None)
    events[i], events[k] = events[k], events[i]
    return ["deadlock"], [(r, i), (r, k)]


@mutation
def receives_before_it_sends(d, rng):
    """A message of an earlier step is sent behind what answers it."""
    found = []
    for r, events in enumerate(d["ranks"]):
        for i, e in enumerate(events):
            if e["op"] != "send" or "mb" not in e:
                continue
            answer = next(
                (
                    k
                    for k in range(i + 1, len(events))
                    if events[k]["op"] == "recv"
                    and events[k]["peer"] == e["peer"]
                    and events[k]["mb"] == e["mb"]
                ),
                None,
            )
            if answer is not None:
                found.append((r, i, answer))
    if not found:
        return None
    r, i, k = rng.choice(found)
    events = d["ranks"][r]
    w = next(
        j
        for j in range(k, len(events))
        if events[j]["op"] == "wait" and events[j]["handle"] == events[k]["handle"]
    )
    peer = events[i]["peer"]
    # No other message to that peer in between, which would come in another order.
    if any(events[j]["op"] == "send" and events[j]["peer"] == peer for j in range(i + 1, w + 1)):
        return None
    events.insert(w, events.pop(i))
    return ["deadlock"], [(r, w), (r, w - 1), (r, k - 1)]


@mutation
@at_event(is_op("free"))
def written_when_freed(d, at, e):
    scratch = {"op": "compute", "name": "scratch", "writes": [e["buffer"]]}
    d["ranks"][at[0]].insert(at[1] + 1, scratch)
    return ["use-after-free"], [(at[0], at[1] + 1)]


@mutation
@at_event(lambda e: e["op"] == "send" and "handle" in e and "makes" not in e)
def sent_when_freed(d, at, e):
    d["ranks"][at[0]].insert(at[1], {"op": "free", "buffer": e["buffer"]})
    return ["use-after-free"], [(at[0], at[1] + 1)]


def part_of(op, key, kind):
    """An end of the buffer's bytes is used while it is in flight."""

    @at_event(lambda e: e["op"] == op and "handle" in e and e.get("numel", 0) > 2)
    def used(d, at, e):
        part = {"id": e["buffer"], "at": 0, "bytes": 2}
        d["ranks"][at[0]].insert(at[1] + 1, {"op": "compute", "name": "scratch", key: [part]})
        return [kind], [(at[0], at[1] + 1)]

    return used


MUTATIONS["writes_a_part_of_what_is_sent"] = part_of("send", "writes", "write-in-flight")
MUTATIONS["reads_a_part_of_what_comes"] = part_of("recv", "reads", "read-in-flight")


@mutation
@at_event(lambda e: e["op"] == "all_reduce" and "out" not in e and "buffer" in e)
def reads_what_is_reduced(d, at, e):
    """A collective in place goes on by itself, and what it works on is read."""
    handle = e.setdefault("handle", "later")
    if handle == "later":
        d["ranks"][at[0]].insert(at[1] + 1, {"op": "wait", "handle": handle})
    d["ranks"][at[0]].insert(at[1] + 1, {"op": "compute", "name": "log", "reads": [e["buffer"]]})
    return ["read-in-flight"], [(at[0], at[1] + 1)]


@mutation
def received_into_what_is_sent(d, rng):
    """A message goes out of the memory into which another comes, both in flight."""
    found = []
    for r, events in enumerate(d["ranks"]):
        for i, e in enumerate(events):
            if e["op"] != "recv" or "handle" not in e or "makes" in e:
                continue
            w = waits_for(d, (r, i), e["handle"])[0]
            found += [
                (r, i, k)
                for k in range(i + 1, w)
                if events[k]["op"] == "send" and "handle" in events[k]
            ]
    if not found:
        return None
    r, i, k = rng.choice(found)
    d["ranks"][r][k]["buffer"] = d["ranks"][r][i]["buffer"]
    return ["read-in-flight", "write-in-flight"], [(r, i), (r, k)]


@mutation
def two_messages_into_one_buffer(d, rng):
    found = []
    for r, events in enumerate(d["ranks"]):
        for i, e in enumerate(events):
            if e["op"] != "recv" or "handle" not in e:
                continue
            w = waits_for(d, (r, i), e["handle"])[0]
            found += [
                (r, i, k)
                for k in range(i + 1, w)
                if events[k]["op"] == "recv" and events[k]["buffer"] != e["buffer"]
            ]
    if not found:
        return None
    r, i, k = rng.choice(found)
    d["ranks"][r][k]["buffer"] = d["ranks"][r][i]["buffer"]
    return ["two-writers"], [(r, i), (r, k)]


@mutation
@at_event(is_op("stream_wait"))
def stream_wait_turned(d, at, e):
    """The other stream waits, so that the collective begins before what it reads is there."""
    after = next(
        i
        for i in range(at[1] + 1, len(d["ranks"][at[0]]))
        if d["ranks"][at[0]][i].get("stream") == e["stream"]
    )
    e["on"], e["stream"] = e["stream"], e["on"]
    return ["read-in-flight", "write-in-flight", "two-writers"], [(at[0], after)]


@mutation
def handle_taken_again(d, rng):
    """Two operations have one handle, and only the last is waited for."""
    found = []
    for r, events in enumerate(d["ranks"]):
        at = [i for i, e in enumerate(events) if e["op"] == "recv" and "handle" in e]
        for i, k in zip(at, at[1:]):
            w = waits_for(d, (r, i), events[i]["handle"])[0]
            if k < w and d.get("backend") == "gloo":
                found.append((r, i, k, w))
    if not found:
        return None
    r, i, k, w = rng.choice(found)
    events = d["ranks"][r]
    events[k]["handle"] = events[i]["handle"]
    return ["unwaited", "read-in-flight", "wait-before-post", "unwaited-implied"], [(r, i), (r, k)]


@mutation
def ring_of_blocking_sends(d, rng):
    """Every rank sends before it receives, and waits for that."""
    if d.get("backend") != "gloo" or not all(events[0]["op"] == "recv" for events in d["ranks"]):
        return None
    out = []
    for r, events in enumerate(d["ranks"]):
        i = next(i for i, e in enumerate(events) if e["op"] == "send")
        e = events.pop(i)
        w = next(k for k, x in enumerate(events) if x.get("handle") == e["handle"])
        events.pop(w)
        del e["handle"]
        events.insert(0, e)
        out += [(r, 0)]
    return ["deadlock"], out


@mutation
def message_split(d, rng):
    """One side sends in two parts what the other takes in one."""
    at, e = alone(d, rng, lambda e: e["op"] == "send" and "handle" in e and e["numel"] > 2)
    if not e:
        return None
    other = other_side(d, at, e)
    rest = dict(e, handle=e["handle"] + "rest", numel=e["numel"] - 1)
    e["numel"] = 1
    events = d["ranks"][at[0]]
    w = waits_for(d, at, e["handle"])[0]
    events.insert(w + 1, {"op": "wait", "handle": rest["handle"]})
    events.insert(at[1] + 1, rest)
    return ["size-mismatch", "unmatched-send"], [at, (at[0], at[1] + 1), other]


@mutation
def collective_in_two(d, rng):
    """One rank reduces a tensor in two parts, the others at once."""
    at, e = alone(d, rng, lambda e: e["op"] == "all_reduce" and e.get("numel", 0) > 2)
    if not e or "handle" in e or len(group_of(d, e)) < 2:
        return None
    rest = dict(e, numel=e["numel"] // 2)
    e["numel"] -= rest["numel"]
    d["ranks"][at[0]].insert(at[1] + 1, rest)
    return ["size-mismatch", "missing-collective", "collective-mismatch"], [at, (at[0], at[1] + 1)]
