"""Expressions of floats within a branch, conditions and their spellings (branches.py)."""

from branch_terms import *


class Draw:
    def __init__(self, rng):
        self.rng = rng
        rank = rng.choice([1, 2, 2, 3])
        self.shape = tuple(rng.choice([2, 3, 4, 5, 8]) for _ in range(rank))
        self.x, self.y = var("x", "f", *self.shape), var("y", "f", *self.shape)

    def pick(self, *of):
        return self.rng.choice(of)

    def number(self):
        """A threshold that the last expression passes."""
        low, high = self.reach
        t = self.pick(
            0.0,
            0.5,
            1.0,
            -1.0,
            2.0,
            0.3,
            -0.7,
            3.25,
            7.0,
            10.0,
            100.0,
            0.01,
            -25.0,
            1000.5,
            1e-3,
            round(self.rng.uniform(-4, 4), 3),
        )
        return (
            t
            if low < t - 1 and t + 2 < high
            else round(self.rng.uniform(low, min(high, low + 6) - 1), 2)
        )

    def number_of(self, low, high):
        self.reach = (low, high)
        return self.number()

    def expression(self):
        x, y, d = self.x, self.y, self.shape[-1]
        (low, high), make = self.pick(
            ((-9e9, 9e9), lambda: x),
            ((-9e9, 9e9), lambda: x),
            ((-9e9, 9e9), lambda: x + y),
            ((-9e9, 9e9), lambda: x * 2.0 + 1.0),
            ((-9e9, 9e9), lambda: x - y * 0.5),
            ((-9e9, 9e9), lambda: x * y),
            ((-9e9, 9e9), lambda: x - mean(x)),
            ((-4, 4), lambda: el("tanh", x) * 4.0),
            ((-2, 9e9), lambda: x * x - 2.0),
            ((-9e9, 9e9), lambda: x + mean(y)),
            ((-9e9, 9e9), lambda: x - largest(y)),
            ((-10, 10), lambda: el("sigmoid", x) * 20.0 - 10.0),
            ((-9e9, 9e9), lambda: el("exp", x) - y),
            ((-9e9, 9e9), lambda: shaped("matmul", [x, var("w0", "f", d, d)], self.shape)),
        )
        self.reach = (low, high)
        return make()

    def other(self):
        """Something to compare with that is not `x`."""
        x, y = self.x, self.y
        return self.pick(
            lambda: y,
            lambda: y,
            lambda: y * 2.0,
            lambda: x * x - 2.0,
            lambda: mean(y),
            lambda: el("tanh", y),
            lambda: y * y + 1.0,
            lambda: mean(x) + 1.0,
            lambda: x * y,
        )()

    def context(self, e):
        """Hides no difference."""
        d = e.shape[-1] if e.shape else 0
        if e.kind != "f":
            e = to_float(e)
        how = self.pick("", "", "scale", "add", "sum", "matmul", "atan", "weight", "select")
        if how == "scale":
            return e * self.pick(2.0, -0.5, 3.0)
        if how == "add" and e.shape == self.shape:
            return e + self.y
        if how == "sum" and d:
            return total(e)
        if how == "matmul" and d and len(e.shape) > 1:
            return shaped("matmul", [e, var("w1", "f", d, 3)], e.shape[:-1] + (3,))
        if how == "tanh":
            return el("atan", e * 0.25)
        if how == "weight" and d:
            return e * var("w2", "f", d)
        if how == "select" and len(e.shape) > 1:
            return shaped("slice.Tensor", [e, 0, 0, 1], (1,) + e.shape[1:])
        return e


OPPOSITE = {"gt": "le", "ge": "lt", "lt": "ge", "le": "gt"}
SLIP = {"gt": "ge", "ge": "gt", "lt": "le", "le": "lt"}
TURNED = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}


def spelled(d, name, a, b):
    """a NAME b in another way."""
    how = d.rng.randrange(4)
    if how == 0:
        return ~compare(OPPOSITE[name], a, b)
    if how == 1 and isinstance(b, T):
        return compare(TURNED[name], b, a)
    if how == 2:
        return compare(TURNED[name], -a, -b)
    strict = {"gt": "gt", "ge": "gt", "lt": "lt", "le": "lt"}[name]
    if name in ("ge", "le"):
        return el("logical_or", compare(strict, a, b), compare("eq", a, b), kind="b")
    return el(
        "logical_and", compare({"gt": "ge", "lt": "le"}[name], a, b), compare("ne", a, b), kind="b"
    )


def beside(d, t):
    """Another threshold."""
    return t + d.pick(0.5, 0.25, 0.01 * max(1.0, abs(t)), 0.02 * max(1.0, abs(t)))


def forms(d, c, a):
    """`a` where c is true, else a number."""
    v = d.pick(0.0, -1.5, 2.0)
    out = [where(c, a, v), masked(a, ~c, v), where(~c, v, a)]
    if v == 0.0:
        out += [a * to_float(c), a * c, to_float(c) * a]
    return out
