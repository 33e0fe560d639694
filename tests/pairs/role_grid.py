"""Data over tensor parallel: rows of ranks that have other rows of a batch, and in each row members
that have other columns of a weight. The whole is a perceptron whose gradients are written down."""

import os

from collectives import all_reduce
from dsl import f32
from input_cases import Graph, normals


def cut(values, width, start, stop):
    """Columns of a matrix that is so wide."""
    return [v for k, v in enumerate(values) if start <= k % width < stop]


class Sizes:
    def __init__(self, rng, rows, members):
        self.rows, self.members = rows, members
        self.own, self.inner = rng.randint(1, 3), rng.randint(2, 3)
        self.width, self.wide = rng.randint(2, 4), members * self.inner
        self.x = normals(rng, rows * self.own * self.width)
        self.up = normals(rng, self.width * self.wide)
        self.down = normals(rng, self.wide * self.width)


def forward(g, s, name, x, up, down):
    """What a rank has: its rows, what its columns make of them, its part of the sum."""
    n = len(x) // s.width
    x = g.given(name + "x", (n, s.width), [x], f32)
    up = g.given(name + "up", (s.width, len(up) // s.width), [up], f32)
    down = g.given(name + "down", (len(down) // s.width, s.width), [down], f32)
    h = x.matmul(up).tanh()
    return x, h, h.matmul(down)


def gradients(s, x, h, y, total):
    """Of `down`, and of the mean over all rows of y^2."""
    d = y.mul(1.0 / total)
    return h.t().matmul(d), y.square().sum(0).mul(1.0 / total)


def left(s):
    g = Graph()
    x, h, y = forward(g, s, "", s.x, s.up, s.down)
    grad, loss = gradients(s, x, h, y, s.rows * s.own)
    return g, {"grad": grad, "loss": loss}


def right(s):
    g, ranks = Graph(), []
    for r in range(s.rows * s.members):
        row, m = divmod(r, s.members)
        step = s.own * s.width
        columns = (m * s.inner, (m + 1) * s.inner)
        up = cut(s.up, s.wide, *columns)
        down = s.down[columns[0] * s.width : columns[1] * s.width]
        x = s.x[row * step : (row + 1) * step]
        ranks.append(forward(g, s, "rank%d." % r, x, up, down))
    out = []
    for row in range(s.rows):
        team = ranks[row * s.members : (row + 1) * s.members]
        y = all_reduce([p for _, _, p in team])
        out += [gradients(s, x, h, y, s.own) for x, h, _ in team]
    named = {}
    for m in range(s.members):
        grad = all_reduce([out[row * s.members + m][0] for row in range(s.rows)], "avg")
        for row in range(s.rows):
            named[row * s.members + m] = grad
    loss = all_reduce([o[1] for o in out], "avg")
    end = {r: "_rank%d" % r if r else "" for r in named}
    outputs = {"grad" + end[r]: named[r] for r in sorted(named)}
    outputs.update({"loss" + end[r]: loss for r in sorted(named)})
    return g, outputs


def write(folder, rng, rows, members):
    s = Sizes(rng, rows, members)
    for side, (g, outputs) in (("left", left(s)), ("right", right(s))):
        g.write(os.path.join(folder, side), outputs)


def another_member(graph, leaves, draw):
    """A collective that takes one member for another, of another row where all ranks meet: there
    those of one row add the same."""
    lists = [n["args"][0] for n in graph["nodes"] if n["op"].startswith("dist::")]
    args, members = draw.choice(lists), len(lists[0])
    step = members if len(args) == max(map(len, lists)) else 1
    k = draw.randrange(step, len(args), step)
    args[k] = args[k - 1]


def stale(graph, leaves, draw):
    """One rank has other values of a leaf than those that it shares it with."""
    name = draw.choice(sorted(n for n in leaves if n[:5] != "rank0" and n[-2:] != ".x"))
    dtype, shape, data = leaves[name]
    leaves[name] = (dtype, shape, data[4:] + data[:4])


def another_row(graph, leaves, draw):
    """One rank has its neighbour's rows, which its team has not."""
    names = sorted(n for n in leaves if n[-2:] == ".x")
    k = draw.randrange(1, len(names))
    other = next(n for n in names if leaves[n] != leaves[names[k]])
    leaves[names[k]] = leaves[other]


def another_number(graph, leaves, draw):
    """One rank counts other rows."""
    n = draw.choice([n for n in graph["nodes"] if isinstance(n.get("args", [0])[-1], float)])
    n["args"][-1] *= 1.5


def another_output(graph, leaves, draw):
    """One rank gives what another member has."""
    grads = [o for o in graph["outputs"] if o["name"].startswith("grad")]
    o = draw.choice(grads[1:])
    o["ref"] = draw.choice([p["ref"] for p in grads if p["ref"] != o["ref"]])


FAULTS = (another_member, stale, another_row, another_number, another_output)
