#!/usr/bin/env python3
"""compare --static: decoders of several layers whose parameters have no values, written in drawn
spellings, with the rules of a small pair in the same spellings. What computes the same is
equivalent, what does not is undecided, and never different.

    tests/cli/static.py [--isomer build/isomer] [--only NAME]

The last line is `N passed, N failed`."""

import json
import os
import random
import re
import sys
import tempfile

from harness import ROOT, expect, isomer, run_functions, short

sys.path.insert(0, os.path.join(ROOT, "tests", "pairs"))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from dsl import Data, Pair, join, values  # noqa: E402
from tensors import read_tensors, write_tensors  # noqa: E402

EQUIVALENT, UNDECIDED = 0, 3
SMALL = {"tokens": 5, "heads": 2, "width": 4, "inner": 12, "words": 11, "layers": 2}
LARGE = {"tokens": 5, "heads": 4, "width": 8, "inner": 40, "words": 23, "layers": 5}
# What a wrong right side does in one of its layers.
FAULTS = ("eps", "act", "scale", "residual", "causal", "other layer", "swapped", "twice", "gate")


def norm(g, x, w, how, eps):
    if how == "fused":
        return x.rms_norm(w, eps)
    square = x.pow(2.0) if how == "pow" else x.mul(x)
    return x.mul(square.mean(-1, True).add(eps).rsqrt()).mul(w)


def heads_of(x, n):
    t, d = x.shape
    return x.view(t, n, d // n).transpose(0, 1).unsqueeze(0)


def attention(g, q, k, v, how, scale, causal):
    if how == "sdpa":
        out = q.sdpa(k, v, None, causal, scale=scale)
    else:
        t = q.shape[2]
        scores = q.matmul(k.transpose(2, 3)).mul(scale)
        if causal:
            scores = scores.add(g.full((t, t), float("-inf")).triu(1))
        out = scores.softmax(-1).matmul(v)
    return out.squeeze(0).transpose(0, 1).reshape(q.shape[2], q.shape[1] * q.shape[3])


def decoder(g, size, spell, fault=None, at=0):
    n, width = size["heads"], size["width"]
    d, f = n * width, size["inner"]
    ids = g.ints("ids", [i % size["words"] for i in range(3, 3 + size["tokens"])], size["words"])
    x = g.param("embed", size["words"], d).embedding(ids)
    for i in range(size["layers"]):
        wrong = fault if i == at else None
        p = lambda name, *shape: g.param("layers.%d.%s" % (i, name), *shape)
        mine = "" if spell.get("fused") else "qkv"
        w = {c: p(c, d, d) for c in mine + ("" if spell.get("turned") else "o")}
        if spell.get("turned"):
            w["o"] = g.leaf("parameter", "layers.%d.o" % i, across("layers.%d.o" % i, d), "float32")
        up, gate, down = p("up", f, d), p("gate", f, d), p("down", d, f)
        one, two = p("one", d), p("two", d)
        if wrong == "other layer" and i > 0:
            down = g.param("layers.%d.down" % (i - 1), d, f)
        if wrong == "swapped":
            w["k"], w["v"] = w["v"], w["k"]
        if wrong == "gate":
            up, gate = gate, up
        h = norm(g, x, one, spell["norm"], 1e-3 if wrong == "eps" else 1e-5)
        order = (0, 2, 1) if wrong == "order" else (0, 1, 2)
        parts = projected(g, h, w, i, d, spell.get("fused"))
        q, k, v = (heads_of(parts[c], n) for c in order)
        scale = width ** (-1.0 if wrong == "scale" else -0.5)
        a = attention(g, q, k, v, spell["attention"], scale, wrong != "causal")
        if spell.get("copied"):
            a = a.op("contiguous", [a]).to("bfloat16").to("float32")
        a = a.matmul(w["o"]) if spell.get("turned") else a.linear(w["o"])
        x = a if wrong == "residual" else x.add(a) if spell["add"] else a.add(x)
        h = norm(g, x, two, spell["norm"], 1e-5)
        a = h.linear(gate)
        a = a.relu() if wrong == "act" else silu(a, spell["act"])
        u = h.linear(up)
        m = (a.mul(u) if spell["mul"] else u.mul(a)).linear(down)
        x = x.add(m).add(m) if wrong == "twice" else x.add(m)
    return x


def projected(g, h, w, i, d, fused):
    if not fused:
        return [h.linear(w[c]) for c in "qkv"]
    rows = join(*(values("layers.%d.%s" % (i, c), d, d) for c in "qkv"))
    whole = g.leaf("parameter", "layers.%d.qkv" % i, rows, "float32")
    return h.linear(whole).split(d, -1)


def across(name, n):
    """A square parameter, stored transposed."""
    v = values(name, n, n)
    return Data(v.shape, [v.values[j * n + i] for i in range(n) for j in range(n)])


def silu(a, how):
    return a.silu() if how else a.mul(a.sigmoid())


def drawn(rng):
    return {
        "norm": rng.choice(("fused", "pow", "mul")),
        "attention": rng.choice(("sdpa", "eager")),
        "add": rng.random() < 0.5,
        "mul": rng.random() < 0.5,
        "act": rng.random() < 0.5,
    }


def strip(folder):
    """Parameters lose their values."""
    with open(os.path.join(folder, "graph.json"), encoding="utf-8") as f:
        names = {n["name"] for n in json.load(f)["nodes"] if n["op"] == "parameter"}
    path = os.path.join(folder, "weights.safetensors")
    write_tensors(path, {n: t for n, t in read_tensors(path).items() if n not in names})


def write(d, name, left, right, bare):
    Pair("", "", "", left, right).write(os.path.join(d, name))
    both = [os.path.join(d, name, side) for side in ("left", "right")]
    for side in both if bare else ():
        strip(side)
    return both


def judged(seed, d):
    """A pair in two drawn spellings, and each fault in it."""
    rng = random.Random(seed)
    l, r = drawn(rng), drawn(rng)
    small = write(
        d, "small", lambda g: decoder(g, SMALL, l), lambda g: decoder(g, SMALL, r), bare=False
    )
    cases = [(None, 0)] + [(f, rng.randrange(1, LARGE["layers"])) for f in FAULTS]
    for k, (fault, at) in enumerate(cases):
        both = write(
            d,
            "large%d" % k,
            lambda g: decoder(g, LARGE, l),
            lambda g: decoder(g, LARGE, r, fault, at),
            bare=True,
        )
        got = isomer("compare", "--static", "--learn", *small, *both)
        text = got.out.decode()
        want = UNDECIDED if fault else EQUIVALENT
        expect(
            got.status == want,
            "seed %d, fault %s in layer %d, %s against %s: status %d: %s",
            seed,
            fault,
            at,
            l,
            r,
            got.status,
            short(text[-600:] or got.err, 900),
        )
        if fault is None:
            expect("EQUIVALENT [proved]" in text, "not proved: %s", short(text))
            expect("by name, not compared" in text, "leaves are not said to be uncompared")
        else:
            if fault != "twice":  # that side has the left's own sum besides
                named_in(both[0], text, at, "seed %d, fault %s" % (seed, fault))


def named_in(folder, text, layer, what):
    """The first gap is named on the left in the layer of the fault: no earlier, though rules' terms
    there have inner nodes that the other side lacks."""
    gap = re.search(r"the first gap is, on the left, (\S+) \(", text)
    expect(gap, "%s: no gap is named: %s", what, short(text))
    with open(os.path.join(folder, "graph.json"), encoding="utf-8") as f:
        nodes = json.load(f)["nodes"]
    first = [n["id"] for n in nodes].index(gap.group(1))
    layers = [n["name"].split(".")[1] for n in nodes[:first] if ".down" in n.get("name", "")]
    expect(int(layers[-1]) == layer, "%s in layer %d is named at %s", what, layer, gap.group(0))


def test_drawn_spellings():
    for seed in range(OPTIONS_COUNT):
        with tempfile.TemporaryDirectory() as d:
            judged(seed, d)


def test_without_rules():
    """Only what is written alike is one."""
    l = {"norm": "pow", "attention": "sdpa", "add": True, "mul": True, "act": True}
    with tempfile.TemporaryDirectory() as d:
        same = write(d, "a", lambda g: decoder(g, LARGE, l), lambda g: decoder(g, LARGE, l), True)
        got = isomer("compare", "--static", *same, "-q")
        expect(got.status == EQUIVALENT, "status %d: %s", got.status, short(got.out or got.err))
        other = dict(l, norm="mul")
        apart = write(
            d, "b", lambda g: decoder(g, LARGE, l), lambda g: decoder(g, LARGE, other), True
        )
        got = isomer("compare", "--static", *apart, "-q")
        expect(got.status == UNDECIDED, "status %d: %s", got.status, short(got.out or got.err))


# Rules that hold where all parts are numbers, and one that holds everywhere.
NUMBERS = (
    (
        "(var x f (m n)) (var w f (m n)) (lhs (aten::log (aten::mul.Tensor x w)))"
        " (rhs (aten::add.Tensor (aten::log x) (aten::log w)))",
        lambda x, w: x.mul(w).log(),
        lambda x, w: x.log().add(w.log()),
        UNDECIDED,
    ),
    (
        "(var x f (m n)) (lhs (aten::mul.Tensor (aten::rsqrt x) (aten::sqrt x)))"
        " (rhs (aten::div.Tensor x x))",
        lambda x, w: x.rsqrt().mul(x.sqrt()).mul(w),
        lambda x, w: x.div(x).mul(w),
        UNDECIDED,
    ),
    (
        "(var x f (m n)) (var w f (m n)) (lhs (aten::log (aten::mul.Tensor x w)))"
        " (rhs (aten::log (aten::mul.Tensor w x)))",
        lambda x, w: x.mul(w).log(),
        lambda x, w: w.mul(x).log(),
        EQUIVALENT,
    ),
)


def test_rules_of_numbers():
    """Where nothing is run, nothing tells that parts are numbers."""
    for i, (rule, left, right, status) in enumerate(NUMBERS):
        with tempfile.TemporaryDirectory() as d:
            sides = [lambda g, f=f: f(g.x(3, 4), g.param("w", 3, 4)) for f in (left, right)]
            both = write(d, "a", *sides, True)
            path = os.path.join(d, "one.rules")
            with open(path, "w") as out:
                out.write("(rule one %s (where))\n" % rule)
            got = isomer("compare", "--static", "--rules", path, *both, "-q")
            expect(got.status == status, "%d: status %d: %s", i, got.status, short(got.out))


PLAIN = {"norm": "pow", "attention": "sdpa", "add": True, "mul": True, "act": True}


def compared_with(d, name, small, right, change):
    """The large pair with weights, those of the right one changed."""
    both = write(
        d, name, lambda g: decoder(g, LARGE, PLAIN), lambda g: decoder(g, LARGE, right), False
    )
    path = os.path.join(both[1], "weights.safetensors")
    tensors = read_tensors(path)
    change(tensors)
    write_tensors(path, tensors)
    return isomer("compare", "--static", "--learn", *small, *both, "-v")


def swapped(a, b):
    def change(tensors):
        tensors[a], tensors[b] = tensors[b], tensors[a]

    return change


def altered(name, how):
    def change(tensors):
        kind, shape, data = tensors[name]
        tensors[name] = (kind, shape, how(data, shape))

    return change


def turned(data, shape):
    n = shape[0]
    items = [data[4 * i : 4 * i + 4] for i in range(n * n)]
    return b"".join(items[j * n + i] for i in range(n) for j in range(n))


def other_row(row):
    def change(data, shape):
        width = len(data) // shape[0]
        return data[: row * width] + b"\0" * width + data[(row + 1) * width :]

    return change


def test_checkpoints():
    """Weights are held against each other as they lie in the files, fused ones by their rows; what
    differs is named."""
    fused = dict(PLAIN, fused=True, norm="mul")
    plain = dict(PLAIN, norm="mul")
    up = ["layers.%d.up" % i for i in range(5)]
    with tempfile.TemporaryDirectory() as d:
        small = {
            s: write(
                d, s, lambda g: decoder(g, SMALL, PLAIN), lambda g, r=r: decoder(g, SMALL, r), False
            )
            for s, r in (("small", plain), ("fused", fused))
        }
        for k, (s, right, change, word) in enumerate(
            (
                ("small", plain, lambda t: None, None),
                ("fused", fused, lambda t: None, None),
                ("small", plain, swapped(up[1], up[3]), up[1] + " is left's " + up[3]),
                ("small", plain, altered("layers.2.o", turned), "layers.2.o is transposed"),
                (
                    "small",
                    plain,
                    altered(up[4], other_row(7)),
                    up[4] + " (1 of 40 rows, the first is 7)",
                ),
                (
                    "fused",
                    fused,
                    swapped("layers.1.qkv", "layers.3.qkv"),
                    "layers.1.qkv has the rows of left's layers.3.q",
                ),
                (
                    "fused",
                    fused,
                    altered("layers.3.qkv", other_row(40)),
                    "layers.3.qkv, at left's layers.3.k (1 of 32 rows, the first is 8)",
                ),
            )
        ):
            got = compared_with(d, "large%d" % k, small[s], right, change)
            text = got.out.decode()
            want = UNDECIDED if word else EQUIVALENT
            expect(got.status == want, "case %d: %d: %s", k, got.status, short(text[-600:], 900))
            expect("not compared" not in text, "case %d: leaves are not compared", k)
            expect(not word or word in text.splitlines()[-1], "%s: %s", word, text[-700:])


def test_learned_leaves():
    """How the small pair's leaves are related is said of the large pair's, by name: fused ones, and
    one that is stored transposed under the same name. What reads them otherwise is undecided."""
    l = dict(PLAIN, norm="mul")
    r = dict(l, fused=True, turned=True)
    with tempfile.TemporaryDirectory() as d:
        small = write(d, "small", lambda g: decoder(g, SMALL, l), lambda g: decoder(g, SMALL, r), 0)
        for k, (bare, fault) in enumerate(
            ((True, None), (False, None), (True, "order"), (True, "scale"))
        ):
            name = "large%d" % k
            both = write(
                d,
                name,
                lambda g: decoder(g, LARGE, l),
                lambda g, f=fault: decoder(g, LARGE, r, f, 3),
                bare,
            )
            got = isomer("compare", "--static", "--learn", *small, *both, "-v")
            text = got.out.decode()
            want = UNDECIDED if fault else EQUIVALENT
            expect(got.status == want, "%s: %d: %s", fault, got.status, short(text[-600:], 900))
            how = "by name, not compared" if bare else "element for element"
            expect("was learned from, " + how in text, "leaves are not said to be learned")
            expect(bare or "not compared" not in text, "leaves are not compared")
        path = os.path.join(d, "large1", "right", "weights.safetensors")
        tensors = read_tensors(path)
        altered("layers.2.o", turned)(tensors)
        write_tensors(path, tensors)
        both = [os.path.join(d, "large1", side) for side in ("left", "right")]
        got = isomer("compare", "--static", "--learn", *small, *both)
        expect(got.status == UNDECIDED, "a matrix that is not stored transposed: %d", got.status)


def test_identities():
    """What gives back its operand needs no rule that was learned: the small pair has none of it."""
    r = dict(PLAIN, norm="mul")
    with tempfile.TemporaryDirectory() as d:
        small = write(
            d, "small", lambda g: decoder(g, SMALL, PLAIN), lambda g: decoder(g, SMALL, r), False
        )
        r = dict(r, copied=True)
        for k, fault in enumerate((None, "scale")):
            both = write(
                d,
                "large%d" % k,
                lambda g: decoder(g, LARGE, PLAIN),
                lambda g, f=fault: decoder(g, LARGE, r, f, 2),
                True,
            )
            got = isomer("compare", "--static", "--learn", *small, *both)
            want = UNDECIDED if fault else EQUIVALENT
            expect(got.status == want, "%s: %d: %s", fault, got.status, short(got.out[-600:]))


def test_added_terms():
    """Rules make less of what other rules added: reshapes around an attention of another shape."""
    model = os.path.join(ROOT, "models", "llama-2l")
    small = [os.path.join(model, side) for side in ("hf-sdpa", "vllm")]
    for right, want in (("vllm", EQUIVALENT), ("vllm-bug-scale", UNDECIDED)):
        both = [small[0], os.path.join(model, right)]
        got = isomer("compare", "--static", "--learn", *small, *both)
        text = got.out.decode()
        expect(got.status == want, "%s: %d: %s", right, got.status, short(text[-600:], 900))


def routed(experts, tokens, bounded):
    """Two of the experts of each token, as places that one side holds to the last one."""

    def build(g):
        x = g.x(tokens, experts)
        i = x.topk(2)[1].reshape(2 * tokens)
        return g.param("w", experts, 3).embedding(i.clamp(0, experts - 1) if bounded else i)

    return build


def test_last_places():
    """2 of 4 experts: that 4 is 2 * 2 is by chance, and 3 is the last of the 4."""
    with tempfile.TemporaryDirectory() as d:
        small = write(d, "small", routed(4, 3, False), routed(4, 3, True), False)
        both = write(d, "large", routed(8, 5, False), routed(8, 5, True), True)
        got = isomer("compare", "--static", "--learn", *small, *both, "-q")
        expect(got.status == EQUIVALENT, "status %d: %s", got.status, short(got.out))


def weighed(experts, chosen, tokens, width, seen):
    """Every second column of the chosen experts, weighed and added up. One side has each token's
    experts in a dimension of their own and in no order, the other in order, one behind the other.
    `seen`: the weights are those of a place in that order."""

    def ends(g, x, v, columns):
        w = g.param("f", chosen).unsqueeze(0) if seen else v.softmax(1)
        return columns.mul(w.unsqueeze(2)).sum(1)

    def left(g):
        x = g.x(tokens, experts)
        v, i = x.topk(chosen)
        rows = g.param("w", experts, width).embedding(i.reshape(tokens * chosen))
        columns = rows.slice(1, 1, width, 2)
        return ends(g, x, v, columns.reshape(tokens, chosen, width // 2))

    def right(g):
        x = g.x(tokens, experts)
        v, i = x.topk(chosen, -1, True, False)
        return ends(g, x, v, g.param("w", experts, width).embedding(i).slice(2, 1, width, 2))

    return left, right


def test_no_order():
    """3 of 4 experts, and 5 of 16 in another order than libtorch sorts them: where it is added up
    over them, that order is not seen."""
    with tempfile.TemporaryDirectory() as d:
        small = write(d, "small", *weighed(4, 3, 5, 14, False), False)
        for seen, status in ((False, EQUIVALENT), (True, UNDECIDED)):
            name = "large%d" % seen
            both = write(d, name, *weighed(16, 5, 7, 22, seen), True)
            got = isomer("compare", "--static", "--learn", *small, *both, "-q")
            expect(got.status == status, "%s: status %d: %s", name, got.status, short(got.out))
            both = write(d, name + "run", *weighed(16, 5, 7, 22, seen), False)
            got = isomer("compare", *both, "-q")
            expect(got.status == seen, "%s: status %d: %s", name, got.status, short(got.out))


def two_experts(layers, experts, chosen):
    """Each layer has two of some experts; the other side has the first two under other names."""

    def names(g, l):
        return ["layers.%d.experts.%d.w" % (l, e) for e in range(experts)]

    def left(g):
        x = g.x(4, 4)
        for l in range(layers):
            w = [g.param(n, 4, 4) for n in names(g, l)]
            a, b = chosen(l)
            x = x.matmul(w[a]).relu().mul(x.matmul(w[b]).sigmoid())
        return x

    def right(g):
        x = g.x(4, 4)
        for l in range(layers):
            u, v = (
                g.param("layers.%d.%s" % (l, n), values(of, 4, 4))
                for n, of in zip("uv", names(g, l))
            )
            x = x.matmul(u).relu().mul(x.matmul(v).sigmoid())
        return x

    return left, right


def test_ambiguous_names():
    """Of layers.0.u = layers.0.experts.0.w it is not told which 0 was the layer's: nobody may say
    that layers.2.u is layers.2.experts.2.w."""
    with tempfile.TemporaryDirectory() as d:
        small = write(d, "small", *two_experts(2, 2, lambda l: (0, 1)), False)
        faults = (lambda l: (l, 1)), (lambda l: (1, 0)), (lambda l: (0, l)), (lambda l: (l, 0))
        for k, fault in enumerate(faults):
            wrong = two_experts(4, 4, lambda l: fault(l) if l >= 2 else (0, 1))
            both = write(d, "large%d" % k, *wrong, True)
            got = isomer("compare", "--static", "--learn", *small, *both, "-q")
            expect(got.status == UNDECIDED, "%d: status %d: %s", k, got.status, short(got.out))


def stacked(layers, experts, d, f, order):
    """Experts in one parameter of three dimensions; the other side has these in another order."""

    def both(g, store):
        x = g.x(experts, 5, d)
        for l in range(layers):
            x = x.bmm(store(g, "layers.%d.up" % l, experts, d, f)).relu()
            x = x.bmm(store(g, "layers.%d.down" % l, experts, f, d))
        return x

    def reordered(g, name, *shape):
        v, kept = values(name, *shape), [shape[k] for k in order]
        at = [0, 0, 0]
        out = []
        for i in range(experts * d * f):
            for k, n in zip((2, 1, 0), reversed(kept)):
                at[order[k]], i = i % n, i // n
            out.append(v.values[(at[0] * shape[1] + at[1]) * shape[2] + at[2]])
        w = g.leaf("parameter", name.replace("layers", "blocks"), Data(kept, out), "float32")
        return w.permute(*(order.index(k) for k in range(3)))

    return lambda g: both(g, lambda g, *a: g.param(*a)), lambda g: both(g, reordered)


def exchanged_parts(data, shape):
    """The first two of a stack's parts."""
    part = len(data) // shape[0]
    return data[part : 2 * part] + data[:part] + data[2 * part :]


def test_stacked():
    """A parameter of three dimensions in another order, with no values and with those of a
    checkpoint, whose parts and layers are where they belong."""
    one = "blocks.1.up"
    for order in ((0, 2, 1), (2, 0, 1)):
        with tempfile.TemporaryDirectory() as d:
            small = write(d, "small", *stacked(2, 2, 3, 5, order), False)
            changes = (None, lambda t: None, altered(one, exchanged_parts))
            for k, change in enumerate(changes + (swapped(one, "blocks.2.up"),)):
                both = write(d, "large%d" % k, *stacked(4, 3, 4, 7, order), not change)
                path = os.path.join(both[1], "weights.safetensors")
                tensors = read_tensors(path)
                (change or (lambda t: None))(tensors)
                write_tensors(path, tensors)
                cert = os.path.join(d, "c%d.json" % k)
                learn = ["--learn", *small]
                got = isomer("compare", "--static", *learn, *both, "-q", "--certificate", cert)
                want = EQUIVALENT if k < 2 else UNDECIDED
                text = short(got.out + got.err)
                expect(got.status == want, "%s, %d: status %d: %s", order, k, got.status, text)
                if want == EQUIVALENT:
                    got = isomer("check", cert, *both, *learn)
                    expect(got.status == 0, "%s, %d: check: %s", order, k, short(got.out + got.err))


def counted(rows, least):
    """A count of ones, which has no number of the input's; the right side's is bounded below."""

    def build(g, bounded):
        flat = [v for r in rows for v in r]
        m = g.leaf("input", "m", Data((len(rows), len(rows[0])), flat), "int64")
        count = m.sum(1, True)
        return g.x(len(rows), 5).mul((count.clamp_min(least) if bounded else count).to("float32"))

    return lambda g: build(g, False), lambda g: build(g, True)


def test_masks():
    """What is made of a mask alone is a constant, and has to be the same of masks like it."""
    rows = {
        "any": [[1, 0, 1, 0, 0], [0, 1, 0, 0, 1]],
        "right": [[1, 1, 1, 0, 0], [1, 1, 0, 0, 0]],
        "ones": [[1] * 5] * 2,
    }
    with tempfile.TemporaryDirectory() as d:
        for name, mask in rows.items():
            for least in (1, 2):
                both = write(d, "%s%d" % (name, least), *counted(mask, least), False)
                cert = os.path.join(d, "c.json")
                got = isomer("compare", "--static", *both, "-q", "--certificate", cert)
                want = EQUIVALENT if least == 1 or name == "ones" else UNDECIDED
                text = short(got.out + got.err)
                expect(got.status == want, "%s, %d: status %d: %s", name, least, got.status, text)
                if want == EQUIVALENT:
                    got = isomer("check", cert, *both)
                    expect(got.status == 0, "%s, %d: %s", name, least, short(got.out + got.err))


def test_options():
    with tempfile.TemporaryDirectory() as d:
        l = {"norm": "pow", "attention": "sdpa", "add": True, "mul": True, "act": True}
        both = write(d, "a", lambda g: decoder(g, SMALL, l), lambda g: decoder(g, SMALL, l), True)
        for more in (["--learn", *both], ["--static", "--rounding"], ["--static", "--refine"]):
            got = isomer("compare", *both, *more)
            expect(got.status == 2 and got.err.count(b"\n") <= 2, "%s: %d", more, got.status)
        got = isomer("compare", *both)
        expect(got.status == 2, "without values, and not --static: status %d", got.status)


OPTIONS_COUNT = 6

if __name__ == "__main__":
    sys.exit(
        run_functions(
            [],
            [
                test_options,
                test_masks,
                test_without_rules,
                test_rules_of_numbers,
                test_added_terms,
                test_last_places,
                test_no_order,
                test_ambiguous_names,
                test_stacked,
                test_identities,
                test_learned_leaves,
                test_checkpoints,
                test_drawn_spellings,
            ],
        )
    )
