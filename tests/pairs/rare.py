#!/usr/bin/env python3
"""Pairs that part where few inputs lie: beyond a cut of the complex plane, where a numerator and a
denominator vanish at once, at the least integer; and by the sign of a constant's zero. Twins that
are one function beside them, or have no value at all. Needs PyTorch, which exports them; what each
is was found on paper, of zeros by running both sides: the constants alone differ, so that one input
tells.

    tests/pairs/rare.py [--isomer build/isomer] [--seed N] [--count N] [-v]

No pair that is different may be `equivalent`, nor one that is equivalent `different` or an error;
nor may some of the equivalent ones, "equal", be `undecided`.
Certificates of what is equivalent are checked. The last line is `N passed, N failed`."""

import argparse
import math
import os
import random
import subprocess
import sys
import tempfile

import torch

from rare_numbers import (
    beside_floats,
    between_0_and_1,
    cancelled_inside,
    divided_by_positive,
    late,
    overflowed,
)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VERDICT = {0: "equivalent", 1: "different", 2: "error", 3: "undecided"}


def parts(z):
    return torch.view_as_real(z)


def planes(rng):
    """(same, left, right, inputs): complex inputs, captured where the sides agree."""
    near = lambda: torch.polar(0.5 + torch.rand(3, 4), torch.rand(3, 4) - 0.5)
    c = rng.choice([2.0, 0.5, 3.0])
    z, w = near(), near()
    return [
        (False, lambda z: parts((z * z).sqrt()), lambda z: parts(z + 0), (z,)),
        (False, lambda z: parts(z.exp().log()), lambda z: parts(z + 0), (z,)),
        (
            False,
            lambda z, w: parts((z * w).sqrt()),
            lambda z, w: parts(z.sqrt() * w.sqrt()),
            (z, w),
        ),
        (False, lambda z, w: (z * w).angle(), lambda z, w: z.angle() + w.angle(), (z, w)),
        (
            False,
            lambda z: parts(z * c)[..., 0],
            lambda z: (z * c).abs() * z.angle().cos().abs(),
            (z,),
        ),
        (
            False,
            lambda z: z.imag * c,
            lambda z: z.conj().imag.abs() * c * z.imag.sign() + z.real.sign() - 1,
            (z,),
        ),
        (True, lambda z, w: parts((z + w) * c), lambda z, w: parts(z * c + w * c), (z, w)),
        (True, lambda z, w: parts(z * w), lambda z, w: parts(w * z), (z, w)),
        (True, lambda z: parts(z.conj().conj() * c), lambda z: parts(c * z), (z,)),
    ]


def quotients(rng):
    """(x - a) / d, undefined where both vanish, and what asks for it."""
    a, k = float(rng.randint(2, 9)), float(rng.randint(2, 7))
    x, u, v, p, q = (torch.randn(3, 4) for _ in range(5))
    d = rng.choice(
        [
            lambda u, v: u - v,
            lambda u, v: u * v - k,
            lambda u, v: u - 2 * v - 1,
            lambda u, v: u + v + k,
        ]
    )
    s = lambda x, u, v: (x - a) / d(u, v)
    keep = lambda x, u, v, p, q: p * 1.0
    asks = [
        lambda x, u, v, p, q: torch.where(torch.isnan(s(x, u, v)), q, p),
        lambda x, u, v, p, q: torch.where(s(x, u, v) == s(x, u, v), p, q),
        lambda x, u, v, p, q: torch.where(s(x, u, v) != s(x, u, v), q, p),
    ]
    more = lambda x, u, v, p, q: torch.where(~(s(x, u, v) > 0.3), p, q)
    less = lambda x, u, v, p, q: torch.where(s(x, u, v) <= 0.3, p, q)
    return [
        (False, rng.choice(asks), keep, (x, u, v, p, q)),
        (False, more, less, (x, u, v, p, q)),
        (True, more, lambda x, u, v, p, q: torch.where(s(x, u, v) > 0.3, q, p), (x, u, v, p, q)),
        (True, asks[0], asks[2], (x, u, v, p, q)),
    ]


def bundles(rng):
    """What parts where it is no number, beside an output that is another one anywhere."""
    f = [(torch.fmax, torch.maximum), (torch.fmin, torch.minimum)]
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    out = []
    for one, other in [rng.choice(f), (lambda q, y: torch.nan_to_num(q), lambda q, y: q + 0)]:
        a, k = rng.randint(1, 9), rng.choice([0.5, 2.0, 3.0])
        out.append(
            (
                False,
                lambda x, y, f=one, a=a, k=k: (f((x - a) / y, y), x * k),
                lambda x, y, f=other, a=a, k=k: (f((x - a) / y, y), x * (k + 1)),
                (x, y),
            )
        )
    return out


def signs(rng):
    """Roots and logarithms of products against their sums and products: numbers where two factors
    are negative. Parameters, which were captured positive, may be."""
    shape, n = rng.choice([(3, 4), (2, 6)]), rng.choice([4, 8])
    x = torch.rand(shape) + 0.5
    v, w = (torch.nn.Parameter(torch.rand(k) + 0.2) for k in ((shape[1], n), (n,)))
    b = torch.rand(n) * 3
    f, joined = rng.choice([(torch.log, torch.add), (torch.sqrt, torch.mul)])
    end = rng.choice([lambda t: t, lambda t: t @ b, lambda t: t.sum(-1)])
    a = rng.choice([2.0, 0.25])
    own = lambda x, v, w: end(f((x @ v) * w))
    apart = lambda x, v, w: end(joined(f(x @ v), f(w)))
    moved = lambda x, v, w: end(f(w * (x @ v)))
    scaled = lambda x, v, w: end(joined(f(x @ (v * w)), f(torch.tensor(a))))
    inner = lambda x, v, w: end(f((x @ (v * w)) * a))
    return [
        (False, own, apart, (x,), (v, w)),
        (True, own, moved, (x,), (v, w)),
        (True, inner, scaled, (x,), (v, w)),
    ]


def integers(rng):
    i, j = torch.randint(1, 40, (3, 4)), torch.randint(1, 9, (3, 4))
    lcm = lambda i, j: torch.lcm(i, j)
    trunc = lambda i, j: torch.div(i, j, rounding_mode="trunc")
    return [
        (True, lcm, lambda i, j: torch.lcm(j, i), (i, j)),
        (False, lcm, lambda i, j: torch.lcm(j, i) + (i < -7), (i, j)),
        (False, trunc, lambda i, j: torch.div(i, j, rounding_mode="floor"), (i, j)),
    ]


def constants(rng):
    """Zeros of either sign, on the way to what reads it, divides by it, or does neither."""
    shape = rng.choice([(3, 4), (2, 6), (12,)])
    x, y = torch.randn(shape), torch.randn(shape).abs() + 0.5
    stored = [torch.zeros(shape), -torch.zeros(shape)]
    some = torch.rand(shape) < 0.5
    made = [
        lambda x, z: torch.full_like(x, z),
        lambda x, z: torch.zeros(shape) * (1.0 if str(z) == "0.0" else -1.0),
        lambda x, z: stored[str(z) == "-0.0"],
        lambda x, z: torch.where(some, torch.full_like(x, z), torch.ones(shape)),
        lambda x, z: torch.full_like(x, z) + torch.full_like(x, -0.0),
    ]
    steps = [
        lambda t: t * 3.0,
        lambda t: t.reshape(-1).reshape(shape),
        lambda t: torch.cat([t, t]).narrow(0, 0, shape[0]),
        lambda t: t.flip(0),
        lambda t: -t,
        lambda t: t / 7.0,
        lambda t: t.to(torch.float64).to(torch.float32),
        lambda t: t + 0.0,
        lambda t: torch.sin(t),
        lambda t: t.expand(2, *shape)[0],
    ]
    ends = [
        lambda x, y, t: x / t,
        lambda x, y, t: x * t.reciprocal(),
        lambda x, y, t: x * t.pow(-1),
        lambda x, y, t: torch.copysign(x, t),
        lambda x, y, t: torch.atan2(t, -y),
        lambda x, y, t: torch.where(torch.signbit(t), x, y),
        lambda x, y, t: x / (y * t),
        lambda x, y, t: (y / t).sigmoid() * x,
        lambda x, y, t: torch.complex(-y, t).sqrt().imag * x,
        lambda x, y, t: torch.complex(-y, t).abs() * x,
        lambda x, y, t: x + t,
        lambda x, y, t: (x - t / 5.0).exp(),
        lambda x, y, t: torch.where(t == 0, x, y),
        lambda x, y, t: x * t.cos() + y * t.exp(),
        lambda x, y, t: (x + t).softmax(-1),
        lambda x, y, t: x / (t + y),
    ]
    out = []
    for _ in range(6):
        one, two, end = rng.choice(made), rng.choice(made[:3]), rng.choice(ends)
        way = [rng.choice(steps) for _ in range(rng.randint(0, 3))]
        signs = rng.choice([(0.0, -0.0), (-0.0, 0.0), (0.0, 0.0), (-0.0, -0.0)])

        def side(make, z, way=way, end=end):
            def f(x, y):
                t = make(x, z)
                for step in way:
                    t = step(t)
                return end(x, y, t)

            return f

        left, right = side(one, signs[0]), side(rng.choice([one, two]), signs[1])
        with torch.no_grad():
            same = torch.equal(left(x, y).nan_to_num(7), right(x, y).nan_to_num(7))
        out.append((same, left, right, (x, y)))
    return out


def many_signs(rng):
    """A root of a product as the product of two roots, of three to five factors: defined for other
    signs where the factors are divided otherwise."""
    n = rng.randint(3, 5)
    inputs = tuple(torch.rand(3, 4) + 0.5 for _ in range(n))
    outer = rng.choice([lambda t: t.sqrt(), lambda t: t.log().exp(), lambda t: t.pow(0.25)])

    def drawn():
        while True:
            part = frozenset(k for k in range(n) if rng.random() < 0.5)
            if 0 < len(part) < n:
                return part

    def side(part):
        def f(*t):
            product = lambda of: math.prod([t[k] for k in of][1:], start=t[of[0]])
            return outer(product(sorted(part))) * outer(
                product([k for k in range(n) if k not in part])
            )

        return f

    one, two = drawn(), drawn()
    same = two in (one, frozenset(range(n)) - one)
    return [(same, side(one), side(two), inputs), (True, side(one), side(one), inputs)]


def zeros(rng):
    """Divided by what is 0 in real numbers, and a rounding error, or of one sign, in floats: no
    number is there to differ. Beside them what is divided by a number, or not at all."""
    shape = rng.choice([(3, 4), (2, 6)])
    x, y = torch.randn(shape), torch.randn(shape).abs() + 0.5
    zero = [
        lambda x, y: 3 * x - x - x - x,
        lambda x, y: 0 * x,
        lambda x, y: x - x,
        lambda x, y: x / 3 + x / 3 + x / 3 - x,
        lambda x, y: (x + y) - x - y,
        lambda x, y: x * y - y * x,
        lambda x, y: (x * 7 - y) / 7 - x + y / 7,
        lambda x, y: (x + y) ** 2 - x * x - 2 * x * y - y * y,
        lambda x, y: y.abs().log().exp() - y.abs(),
        lambda x, y: -(0 * y),
    ]
    ends = [
        lambda x, y, z: 1 / z,
        lambda x, y, z: y / z,
        lambda x, y, z: x * z.reciprocal(),
        lambda x, y, z: (x + y / z) * y,
        lambda x, y, z: torch.cat([y / z, y / z]),
    ]
    out = []
    for _ in range(4):
        one, two, end = rng.choice(zero), rng.choice(zero), rng.choice(ends)
        c = rng.choice([0.5, 2.0])
        side = lambda z, end=end: lambda x, y: end(x, y, z(x, y))
        off = lambda z, d, end=end: lambda x, y: end(x, y, z(x, y) + d)
        out += [
            (True, side(one), side(two), (x, y)),
            (False, off(one, c), off(two, c * 1.5), (x, y)),
            (False, side(one), off(two, c), (x, y)),
        ]
    # Infinite of the other sign where two inputs are one.
    out.append((True, lambda x, y: y / (x - y), lambda x, y: -y / (y - x), (x, y)))
    return out


def hidden(rng):
    """Numbers that decide inside of an operator: a bound of its own, an index that it leaves out,
    the ties of a rounding to places."""
    f = torch.nn.functional
    x, w = torch.randn(3, 4), torch.randn(9, 5)
    ids, none, places = torch.tensor([[1, 2, 3, 0]]), rng.randint(4, 8), rng.choice([-2, -1, 3, 4])
    mode, by = rng.choice(["sum", "mean", "max"]), 10.0**places
    ones = torch.ones_like(x)
    power = rng.choice([lambda x: x.abs(), lambda x: x * x, lambda x: x.abs() * 3])
    bags = lambda ids, w, p: f.embedding_bag(ids, w, mode=mode, padding_idx=p)
    return [
        (
            False,
            lambda x: f.binary_cross_entropy((-power(x)).exp(), ones, reduction="none"),
            lambda x: power(x),
            (x,),
        ),
        (False, lambda i, w: bags(i, w, none), lambda i, w: bags(i, w, None), (ids,), (w,)),
        (True, lambda i, w: bags(i, w, none), lambda i, w: bags(i, w * 1.0, none), (ids,), (w,)),
        (
            False,
            lambda x: torch.round(x, decimals=places),
            lambda x: (x * by + 0.5).floor() / by,
            (x,),
        ),
    ]


def narrow(rng):
    """Operators that are float32 inside whatever they are given, against what they mean, and with
    another scale, bound or slope."""
    a = torch.ops.aten
    x, g = torch.randn(3, 4) * 3, torch.randn(3, 4)
    scale, zero, low = rng.choice([0.1, 0.3, 0.07]), rng.randint(-3, 3), rng.choice([-128, -8])
    high = -low - 1

    def written(scale, zero, low, high):
        return lambda x: (((x / scale).round() + zero).clamp(low, high) - zero) * scale

    step = lambda x: torch.fake_quantize_per_tensor_affine(x, scale, zero, low, high)
    slope = lambda x, g, by=6: g * ((x > -3) & (x < 3)) / by
    hard = lambda x, g: a.hardsigmoid_backward(g, x)
    return [
        (True, step, written(scale, zero, low, high), (x,)),
        (False, step, written(scale * 1.01, zero, low, high), (x,)),
        (False, step, written(scale, zero + 1, low, high), (x * 40,)),
        (False, step, written(scale, zero, low, high - 1), (x,)),
        (True, hard, slope, (x, g)),
        (False, hard, lambda x, g: slope(x, g, 6.01), (x, g)),
        (False, hard, lambda x, g: slope(x + 1, g), (x, g)),
        (True, lambda x: torch.round(x, decimals=2), lambda x: torch.round(x * 100) / 100, (x,)),
    ]


def zero_signs(rng):
    """Inputs of -0.0, which some operators tell from 0 and others do not."""
    x, y, c = torch.randn(3, 4), torch.randn(3, 4), rng.choice([2.0, 0.5, 3.0])
    reads = rng.choice(
        [
            lambda x, y: torch.signbit(x),
            lambda x, y: torch.copysign(y, x),
            lambda x, y: torch.atan2(x, -y.abs()).sign(),
            lambda x, y: torch.where(torch.signbit(x), y, y * c),
        ]
    )
    lost = rng.choice([lambda x: x + 0.0, lambda x: x - x * 0, lambda x: x.abs() * x.sign()])
    return [
        (False, lambda x: torch.signbit(x), lambda x: x < 0, (x,)),
        (
            False,
            lambda x, y: torch.copysign(y, x),
            lambda x, y: y.abs().where(x >= 0, -y.abs()),
            (x, y),
        ),
        (False, reads, lambda x, y: reads(lost(x), y), (x, y)),
        (True, reads, lambda x, y: reads(x * c, y), (x, y)),
        (True, reads, lambda x, y: reads(-(-x), y), (x, y)),
        (True, lambda x: (x < 0) | (x == 0), lambda x: x <= 0, (x,)),
    ]


INNER = [
    torch.exp,
    torch.expm1,
    torch.sigmoid,
    torch.tanh,
    torch.sinh,
    torch.atan,
    torch.nn.functional.softplus,
    lambda x: x.abs().sqrt(),
    lambda x: x.abs().log1p(),
    lambda x: x * x * x,
    lambda x: x.sum(-1, keepdim=True),
    lambda x: x.mean(-1, keepdim=True),
]


def drawn_divisor(rng):
    """Functions one in another, less a number that they reach, as often no float gives exactly."""
    inner = [rng.choice(INNER) for _ in range(rng.randint(1, 2))]
    scale = rng.choice([1.0, 0.5, 3.0])

    def f(x):
        for g in inner:
            x = g(x)
        return x * scale

    at = f(torch.full((1, 1), round(rng.uniform(0.3, 3.0), 1), dtype=torch.float64)).item()
    at = round(at, rng.choice([2, 6]))
    return lambda x: f(x) - at


def cancelled(rng):
    """x * d / d, where the divisor is a function less a number, and may be 0."""
    n, k = rng.choice([2, 4, 5, 8]), float(rng.randint(1, 6))
    x = torch.randn(3, n)
    d = (
        drawn_divisor(rng)
        if rng.random() < 0.6
        else rng.choice(
            [
                lambda x: x.sum(-1, keepdim=True) - k,
                lambda x: k - x.sum(-1, keepdim=True),
                lambda x: x.mean(-1, keepdim=True) + k,
                lambda x: (x * x).sum(-1, keepdim=True) - n * k * k,
                lambda x: x.square().mean(-1, keepdim=True) - k * k,
                lambda x: x.abs().sqrt() - k,
                lambda x: x.exp() - k,
            ]
        )
    )
    over = lambda x: (x * x).sum(-1, keepdim=True) + k
    return [
        (False, lambda x: x * d(x) / d(x), lambda x: x * 1.0, (x,)),
        (False, lambda x: d(x) / d(x), lambda x: torch.ones_like(d(x)), (x,)),
        (True, lambda x: x * d(x) / d(x), lambda x: d(x) * x / d(x), (x,)),
        (True, lambda x: x * over(x) / over(x), lambda x: x * 1.0, (x,)),
        (True, lambda x: x / d(x) * d(x).reciprocal(), lambda x: x / d(x).square(), (x,)),
    ]


def unbounded(rng):
    """Divisors that are 0 between two inputs, where the other side grows without bound, too, though
    it is finite but for rounding; and small numbers beside large ones, which are not 0."""
    k = rng.choice([1.0, 0.5, 3.0])
    x = torch.randn(3, 4)
    e = lambda x: (x * k).exp()
    return [
        ("equal", lambda x: (x * k).tan(), lambda x: (x * k).sin() / (x * k).cos(), (x,)),
        ("equal", lambda x: k / (x * k).tan(), lambda x: k * (x * k).cos() / (x * k).sin(), (x,)),
        (
            True,
            lambda x: x / (e(x) - 5) + torch.softmax(x, -1),
            lambda x: x * (e(x) - 5).reciprocal() + e(x / k) / e(x / k).sum(-1, keepdim=True),
            (x,),
        ),
    ]


class Side(torch.nn.Module):
    """The function of its inputs and of some parameters."""

    def __init__(self, f, parameters=()):
        super().__init__()
        self.p = torch.nn.ParameterList(parameters)
        self.f = f

    def forward(self, *inputs):
        return self.f(*inputs, *self.p)


def run(isomer, *words):
    p = subprocess.run(
        [isomer, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    lines = p.stdout.strip().splitlines() or [""]
    return p.returncode, lines[-1], any(": equivalent" in line for line in lines)


def one(isomer, folder, case):
    """What is wrong, None: nothing."""
    same, left, right, inputs, *parameters = case
    at = [os.path.join(folder, side + ".pt2") for side in ("left", "right")]
    for path, f in zip(at, (left, right)):
        torch.export.save(torch.export.export(Side(f, *parameters), inputs), path)
    certificate = os.path.join(folder, "c.json")
    rc, said, some = run(isomer, "compare", *at, "--certificate", certificate)
    may = ("equivalent", "undecided") if same else ("different", "undecided")
    if VERDICT.get(rc) not in (may[:1] if same == "equal" else may):
        return "%s, expected %s: %s" % (
            VERDICT.get(rc, rc),
            "equivalent" if same else "different",
            said,
        )
    if some and not same:
        return "an output is said to be equivalent"
    if rc == 0:
        rc, said, _ = run(isomer, "check", certificate, *at)
        if rc:
            return "its certificate: " + said
    return None


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=1, help="rounds of all pairs, drawn anew")
    a.add_argument("--only", help="the pairs of one kind")
    a.add_argument("-v", action="store_true")
    o = a.parse_args()
    passed = failed = 0
    for k in range(o.count):
        rng = random.Random(o.seed * 1000 + k)
        torch.manual_seed(o.seed * 1000 + k)
        for kind in (
            planes,
            quotients,
            bundles,
            signs,
            many_signs,
            integers,
            constants,
            zeros,
            hidden,
            narrow,
            zero_signs,
            cancelled,
            unbounded,
            late,
            beside_floats,
            between_0_and_1,
            cancelled_inside,
            divided_by_positive,
            overflowed,
        ):
            if o.only not in (None, kind.__name__):
                continue
            for n, case in enumerate(kind(rng)):
                with tempfile.TemporaryDirectory() as folder:
                    wrong = one(os.path.abspath(o.isomer), folder, case)
                passed, failed = passed + (wrong is None), failed + (wrong is not None)
                if wrong or o.v:
                    print(
                        "%s %s %d, round %d: %s"
                        % ("FAILED" if wrong else "ok", kind.__name__, n, k, wrong),
                        flush=True,
                    )
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
