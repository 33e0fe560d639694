"""What the families of inputs.py are made of: captures with several input sets and domains, and
pieces of models."""

import os

import dsl
from dsl import Data, i64

FAMILIES = {}


def family(f):
    FAMILIES[f.__name__] = f
    return f


class Graph(dsl.Graph):
    """Inputs have a value for each set, and perhaps a domain."""

    def __init__(self):
        super().__init__()
        self.sets = []

    def given(self, name, shape, sets, dtype=i64, domain=None):
        t = self.leaf("input", name, Data(shape, sets[0]), dtype)
        if domain:
            self.nodes[-1]["domain"] = domain
        for k, v in enumerate(sets[1:]):
            while len(self.sets) <= k:
                self.sets.append({})
            self.sets[k][name] = (Data(shape, v), dtype)
        return t

    def write(self, folder, outputs):
        super().write(folder, outputs)
        for k, s in enumerate(self.sets):
            dsl.write_safetensors(os.path.join(folder, "inputs.%d.safetensors" % (k + 1)), s)


class Case:
    """`in_order`: the relations are not those of the sides exchanged. `sure`: `undecided` is as
    wrong as any other verdict that is not expected."""

    def __init__(self, expected, left, right, relations=None, what="", in_order=False, sure=False):
        self.expected, self.sides, self.relations, self.what = (
            expected,
            (left, right),
            relations,
            what,
        )
        self.in_order, self.sure = in_order, sure

    def write(self, folder):
        for side, build in zip(("left", "right"), self.sides):
            g = Graph()
            out = build(g)
            g.write(os.path.join(folder, side), out if isinstance(out, dict) else {"y": out})
        if self.relations:
            with open(os.path.join(folder, "relations.txt"), "w", encoding="utf-8") as f:
                f.write(self.relations)


# ---- pieces ----


def normals(rng, n, scale=1.0):
    return [rng.gauss(0, scale) for _ in range(n)]


def tokens(rng, n, low, high, without=()):
    return [rng.choice([t for t in range(low, high) if t not in without]) for _ in range(n)]


def ones_and_zeros(rng, rows, n, form):
    out = []
    for _ in range(rows):
        k = rng.randint(1, n)
        if form == "left":
            out += [0] * (n - k) + [1] * k
        elif form == "right":
            out += [1] * k + [0] * (n - k)
        elif form == "full":
            out += [1] * n
        else:
            row = [int(rng.random() < 0.6) for _ in range(n)]
            row[rng.randrange(n)] = 1
            out += row
    return out


def linear(g, x, name, n, other):
    w = g.param(name, n, x.shape[-1])
    return x.matmul(w.t()) if other else x.linear(w)


def silu(x, other):
    return x.mul(x.sigmoid()) if other else x.silu()


def norm(x, other):
    return (
        x.mul(x.square().mean(-1, True).add(1e-5).rsqrt())
        if other
        else x.div(x.square().mean(-1, True).add(1e-5).sqrt())
    )


def softmax(x, other):
    if not other:
        return x.softmax(-1)
    e = x.sub(x.amax(-1, True)).exp()
    return e.div(e.sum(-1, True))


def bug(rng, x):
    """Something that is off by a little, on any input."""
    return rng.choice(
        [lambda: x.mul(1.001), lambda: x.add(0.01), lambda: x.neg(), lambda: x.mul(2.0)]
    )()


def attend(g, x, mask, other, width):
    """Attention of one head; mask: [B, T], 0 where keys are padding, or None."""
    q, k, v = (linear(g, x, "%s.weight" % n, width, other) for n in "qkv")
    s = (
        q.matmul(k.transpose(-2, -1)).mul(width**-0.5)
        if not other
        else q.mul(width**-0.5).matmul(k.transpose(-2, -1))
    )
    if mask is not None:
        gone = mask.eq(0).unsqueeze(1)
        s = s.masked_fill(gone, float("-inf")) if not other else gone.where(float("-inf"), s)
    return softmax(s, other).matmul(v)


def say(rng, name, domain):
    """(domain of the left capture, of the right one, relations): the same said in different
    places."""
    where = rng.randrange(4)
    if where == 3:
        clauses = []
        if "range" in domain:
            clauses.append("range %s %s" % tuple(domain["range"]))
        if "exclude" in domain:
            clauses.append("exclude " + " ".join(str(v) for v in domain["exclude"]))
        clauses += [k for k in ("distinct", "sorted") if domain.get(k)]
        if "mask" in domain:
            clauses.append("mask " + domain["mask"])
        rng.shuffle(clauses)
        return None, None, "input %s %s\n" % (name, rng.choice([" ", ", "]).join(clauses))
    return domain if where != 1 else None, domain if where != 0 else None, None
