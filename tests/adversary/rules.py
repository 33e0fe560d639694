#!/usr/bin/env python3
"""Rules that an adversary would write against random tests, with a truth that mpmath knows.

    rules.py --isomer build/isomer [--seed 1] [--count 400] [--only KIND] [--keep FILE]

Kinds: `absorb` (operands that float64 loses in sums, at random depth and magnitude), `attrs`
(attributes whose sign, zero, order or size matters), `complex` (identities that hold on one branch
only), and `literals` (numbers some last places beside what the other side makes). A rule's two
sides are one expression and a rewriting of it; whether they are equal is found by evaluating both
at points of several scales with some hundred digits. No false rule may be tested or proved, no true
one refuted, and at most one in ten of the true ones unknown.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile

try:
    import mpmath as mp
except ImportError:
    print("adversary: no mpmath here: left out")
    sys.exit(0)

DIGITS = 700
N = 3  # elements of each variable, for reductions


class E:
    """An expression: its text in the rule language, and its elements at given values."""

    def __init__(self, text, f):
        self.text, self.f = text, f

    def at(self, env):
        return self.f(env)


def var(name):
    return E(name, lambda env: env[name])


def call1(op, g):
    return lambda x: E(f"(aten::{op} {x.text})", lambda env: [g(v) for v in x.at(env)])


def call2(op, g):
    return lambda x, y: E(
        f"(aten::{op} {x.text} {y.text})",
        lambda env: [g(a, b) for a, b in zip(x.at(env), y.at(env))],
    )


def number(c, env):
    return env[c] if isinstance(c, str) else mp.mpf(c)


def with_number(op, g):
    return lambda x, c: E(
        f"(aten::{op} {x.text} {c if isinstance(c, str) else repr(float(c))})",
        lambda env: [g(v, number(c, env)) for v in x.at(env)],
    )


class Undefined(Exception):
    pass


def safely(f, domain=lambda *v: True):
    def g(*v):
        if not domain(*v):
            raise Undefined
        return f(*v)

    return g


def plus(a, b):
    """Where these digits lose an operand, too, a point says nothing."""
    y = a + b
    if (a != 0 and y == b) or (b != 0 and y == a):
        raise Undefined
    return y


def saturates(f):
    """The same of what goes to 1."""

    def g(a):
        y = f(a)
        if abs(y) == 1:
            raise Undefined
        return y

    return g


add, sub, mul = (
    call2("add.Tensor", plus),
    call2("sub.Tensor", lambda a, b: plus(a, -b)),
    call2("mul.Tensor", lambda a, b: a * b),
)
div = call2("div.Tensor", safely(lambda a, b: a / b, lambda a, b: b != 0))
maximum, minimum = call2("maximum", max), call2("minimum", min)
adds, subs, muls = (
    with_number("add.Scalar", plus),
    with_number("sub.Scalar", lambda a, c: plus(a, -c)),
    with_number("mul.Scalar", lambda a, c: a * c),
)
divs = with_number("div.Scalar", safely(lambda a, c: a / c, lambda a, c: c != 0))
exp, tanh, sin, cos = (
    call1("exp", mp.exp),
    call1("tanh", saturates(mp.tanh)),
    call1("sin", mp.sin),
    call1("cos", mp.cos),
)
log = call1("log", safely(mp.log, lambda a: mp.im(a) != 0 or a > 0))
sqrt = call1("sqrt", safely(mp.sqrt, lambda a: mp.im(a) != 0 or a >= 0))
erf, sigmoid, neg, absolute = (
    call1("erf", saturates(mp.erf)),
    call1("sigmoid", lambda a: 1 / plus(mp.mpf(1), mp.exp(-a))),
    call1("neg", lambda a: -a),
    call1("abs", abs),
)
atan, asinh, square = (
    call1("atan", mp.atan),
    call1("asinh", mp.asinh),
    call1("square", lambda a: a * a),
)
log1p, expm1 = call1("log1p", safely(mp.log1p, lambda a: a > -1)), call1("expm1", mp.expm1)
relu = call1("relu", lambda a: max(a, mp.mpf(0)))
erfinv = call1("erfinv", safely(mp.erfinv, lambda a: -1 < a < 1))
i0 = call1("special_i0", lambda a: mp.besseli(0, a))
silu = call1("silu", lambda a: a / plus(mp.mpf(1), mp.exp(-a)))


def fold(op, g):
    return lambda x: E(f"(aten::{op} {x.text})", lambda env: [g(x.at(env))] * N)


total, mean = fold("sum", sum), fold("mean", lambda v: sum(v) / len(v))
largest = lambda x: E(f"(aten::amax {x.text} (list 0))", lambda env: [max(x.at(env))] * N)
smallest = lambda x: E(f"(aten::amin {x.text} (list 0))", lambda env: [min(x.at(env))] * N)


def softmax(x):
    def f(env):
        v = x.at(env)
        e = [mp.exp(a) for a in v]
        return [a / sum(e) for a in e]

    return E(f"(aten::softmax.int {x.text} 0)", f)


class Rule:
    def __init__(self, name, lhs, rhs, vars="f", attrs=(), where="", kind="f", points=None):
        self.name, self.lhs, self.rhs, self.attrs, self.where, self.kind, self.points = (
            name,
            lhs,
            rhs,
            attrs,
            where,
            kind,
            points,
        )
        self.vars = vars

    def text(self):
        vs = " ".join(f"(var {v} {self.kind} (N))" for v in self.vars)
        at = " ".join(f"(attr {a} {k})" for a, k in self.attrs)
        return (
            f"(rule {self.name} {vs} {at}\n  (lhs {self.lhs.text})\n  (rhs "
            f"{self.rhs.text}){self.where})"
        )


# ---- points ----

SCALES = [1, 1, 1, 8, 0.01, 60]


def real_point(rng, rule, k):
    env = {}
    for v in rule.vars:
        s = SCALES[k % len(SCALES)]
        env[v] = [mp.mpf(rng.gauss(0, 1) * s) for _ in range(N)]
        if k % 5 == 3:
            env[v] = [abs(a) for a in env[v]]
        if k % 7 == 4:
            env[v] = [mp.mpf(rng.randrange(-2, 3)) for _ in range(N)]
        if rule.points and k % 2:
            env[v] = [rule.points[0] + mp.mpf(rng.gauss(0, 1)) for _ in range(N)]
    attrs = [a for a, kind in rule.attrs if kind == "float"]
    for a in attrs:
        env[a] = mp.mpf(
            rng.choice([0.5, 2, -1, -0.5, 3, 0, 1, 1e3, -1e-3, rng.gauss(0, 1), rng.gauss(0, 3)])
        )
    if len(attrs) > 1 and k % 3 == 0:
        env[attrs[1]] = env[attrs[0]]
    return env


def complex_point(rng, rule, k):
    env = {}
    for v in rule.vars:
        s = [1, 5, 0.05, 20, 1, 3][k % 6]
        env[v] = [mp.mpc(rng.gauss(0, s), rng.gauss(0, s)) for _ in range(N)]
        if k % 4 == 2:
            env[v] = [mp.mpc(-abs(z.real), z.imag / 1000) for z in env[v]]
    for a, _ in rule.attrs:
        env[a] = mp.mpf(rng.choice([0.5, 2, -1, -0.5, 3, 1.5]))
    return env


def truth(rule, rng):
    """True, False, or None where too few points have a value."""
    good = 0
    mp.mp.dps = DIGITS
    for k in range(160 if rule.attrs else 40):  # attributes take several to be told apart
        env = (complex_point if rule.kind == "c" else real_point)(rng, rule, k)
        try:
            a, b = rule.lhs.at(env), rule.rhs.at(env)
        except (Undefined, ZeroDivisionError, OverflowError, ValueError):
            continue
        for x, y in zip(a, b):
            if abs(x - y) > mp.mpf(10) ** (-DIGITS // 2) * max(abs(x), abs(y), mp.mpf(10) ** -300):
                return False
        good += 1
    return True if good >= 8 else None


def parts_on_cut(rule):
    """Whether the sides are equal only off the negative axis. libtorch has two zeros there: it
    agrees with conj of either side, and with no quotient."""
    env = {v: [mp.mpc(-2.5, 0)] * N for v in rule.vars}
    env.update({a: mp.mpf(0.5) for a, _ in rule.attrs})
    try:
        a, b = rule.lhs.at(env), rule.rhs.at(env)
    except (Undefined, ZeroDivisionError, OverflowError, ValueError):
        return False
    return any(abs(x - y) > 1e-9 * abs(x) for x, y in zip(a, b))


# ---- expressions ----


def leaf(rng, names):
    x = var(rng.choice(names))
    how = rng.randrange(4)
    return x if how else rng.choice([tanh, sin, neg])(x)


def expression(rng, names, depth):
    if depth == 0:
        return leaf(rng, names)
    how = rng.randrange(12)
    sub_ = lambda: expression(rng, names, depth - 1)
    if how < 2:
        return rng.choice([add, sub, mul, maximum, minimum])(sub_(), sub_())
    if how < 8:
        return rng.choice(
            [
                tanh,
                sin,
                cos,
                atan,
                sigmoid,
                asinh,
                square,
                absolute,
                relu,
                erf,
                silu,
                lambda x: exp(tanh(x)),
            ]
        )(sub_())
    if how < 10:
        return rng.choice([muls, adds, subs])(
            sub_(), rng.choice([0.5, 2, -1.5, 0.1, 3, 1e-3, 7.25])
        )
    return rng.choice(
        [
            lambda x: mul(x, total(tanh(x))),
            softmax,
            lambda x: sub(x, mean(x)),
            lambda x: add(x, largest(x)),
        ]
    )(sub_())


def magnitude(rng):
    return float(rng.choice([1, 1, -1, 3, 7])) * 10.0 ** rng.choice(
        [8, 12, 15, 17, 20, 25, 30, 40, 100]
    )


# Rewritings of u: (name, what it becomes); whether that is u is for mpmath to say. v is something
# else.
def absorptions(rng, u, v):
    c, tiny = magnitude(rng), 10.0 ** -rng.choice([17, 20, 24, 30, 45, 80])
    wrap = rng.choice([tanh, sin, sigmoid])
    zero = muls(u, 0.0)
    # A number that moves by little, where a function of it is flat: in float64 it is one number.
    outer = [rng.choice([tanh, sigmoid]) for _ in range(rng.randint(1, 2))]

    def flat(x):
        for f in outer:
            x = f(x)
        return x

    def far(x):
        return flat(log(adds(exp(tanh(x)), abs(c))))

    return [
        ("flat-far", far(u), far(zero)),
        ("plus-minus", u, subs(adds(u, c), c)),
        ("plus-minus-zero", zero, subs(adds(u, c), c)),
        ("times-zero", zero, muls(adds(u, c), 0.0)),
        ("plus-minus-other", add(u, v), subs(add(adds(u, c), v), c)),
        ("lost-other", u, subs(adds(add(u, muls(v, tiny)), 1.0), 1.0)),
        ("tiny", u, add(u, muls(v, tiny))),
        ("tiny-both", add(u, muls(v, tiny)), add(muls(v, tiny), u)),
        ("scaled", u, divs(muls(u, c), c)),
        ("log-far", log(adds(muls(exp(tanh(u)), 0.0), abs(c))), log(adds(exp(tanh(u)), abs(c)))),
        ("log-near", u, log(exp(u))),
        ("far-difference", sub(u, v), sub(adds(u, c), adds(v, c))),
        ("far-half", divs(sub(u, v), 2.0), sub(adds(u, c), adds(v, c))),
        ("tail", relu(u), log1p(exp(u))),
        ("tail-far", adds(u, 40.0), log1p(exp(adds(u, 40.0)))),
        ("root", absolute(u), sqrt(square(u))),
        ("root-tiny", absolute(u), sqrt(adds(square(u), tiny))),
        ("sum-far", total(u), subs(total(adds(u, 0.0)), 0.0)),
        ("mean-far", mean(u), subs(mean(adds(u, c)), c)),
        ("mean-far-zero", muls(mean(u), 0.0), subs(mean(adds(u, c)), c)),
        ("softmax-far", softmax(u), softmax(adds(u, c))),
        ("softmax-tilted", softmax(u), softmax(add(u, muls(v, tiny)))),
        ("square-far", muls(u, 2.0), divs(sub(square(adds(u, c)), adds(square(u), c * c)), c)),
        (
            "inverse-tiny",
            div(u, adds(square(v), 1.0)),
            div(u, adds(add(square(v), muls(absolute(u), tiny)), 1.0)),
        ),
        ("saturated", tanh(adds(square(u), 30.0)), tanh(adds(square(v), 30.0))),
        (
            "saturated-same",
            muls(tanh(adds(square(u), 30.0)), 2.0),
            add(tanh(adds(square(u), 30.0)), tanh(adds(square(u), 30.0))),
        ),
        ("expm1", expm1(muls(u, tiny)), muls(u, tiny)),
        ("sin-tiny", sin(muls(u, 1e-12)), muls(u, 1e-12)),
        ("unknown-op", erfinv(muls(wrap(u), 0.5)), subs(adds(erfinv(muls(wrap(u), 0.5)), c), c)),
        ("unknown-op-zero", zero, subs(adds(i0(tanh(u)), abs(c)), abs(c))),
        ("max-far", maximum(u, v), subs(maximum(adds(u, c), adds(v, c)), c)),
        ("max-far-zero", maximum(u, v), add(minimum(u, v), subs(adds(maximum(zero, zero), c), c))),
        ("divide-far", div(u, adds(square(v), 1.0)), div(muls(u, c), adds(muls(square(v), c), c))),
        (
            "divide-off",
            div(u, adds(square(v), 1.0)),
            div(muls(u, c), adds(muls(square(v), c), c * (1 + 2.0**-50))),
        ),
    ]


def absorb_rule(rng, i):
    u, v = expression(rng, "xy", rng.randrange(3)), leaf(rng, "xyz")
    name, a, b = rng.choice(absorptions(rng, u, v))
    for _ in range(rng.randrange(3)):  # deeper: the same around both
        w, c = leaf(rng, "xz"), rng.choice([2.0, -0.5, 3.0])
        how = rng.choice(
            [
                lambda t: muls(t, c),
                lambda t: add(t, w),
                lambda t: tanh(t),
                lambda t: mul(t, adds(sin(w), 2.0)),
                lambda t: sub(w, t),
                neg,
            ]
        )
        a, b = how(a), how(b)
    if rng.randrange(2):
        a, b = b, a
    return Rule(f"absorb-{i}-{name}", a, b, vars="xyz")


# ---- attributes ----


def clamp(x, lo, hi):
    return E(
        f"(aten::clamp {x.text} {lo} {hi})",
        lambda env: [min(max(v, number(lo, env)), number(hi, env)) for v in x.at(env)],
    )


def clamp_min(x, lo):
    return E(
        f"(aten::clamp_min {x.text} {lo})", lambda env: [max(v, number(lo, env)) for v in x.at(env)]
    )


def clamp_max(x, hi):
    return E(
        f"(aten::clamp_max {x.text} {hi})", lambda env: [min(v, number(hi, env)) for v in x.at(env)]
    )


def leaky(x, a):
    return E(
        f"(aten::leaky_relu {x.text} {a})",
        lambda env: [v if v > 0 else v * env[a] for v in x.at(env)],
    )


def added(x, y, a):
    return E(
        f"(aten::add.Tensor {x.text} {y.text} :alpha {a})",
        lambda env: [p + env[a] * q for p, q in zip(x.at(env), y.at(env))],
    )


def addcmul(x, y, z, a):
    return E(
        f"(aten::addcmul {x.text} {y.text} {z.text} :value {a})",
        lambda env: [p + env[a] * q * r for p, q, r in zip(x.at(env), y.at(env), z.at(env))],
    )


def elu(x, a):
    return E(
        f"(aten::elu {x.text} {a})",
        lambda env: [v if v > 0 else env[a] * mp.expm1(v) for v in x.at(env)],
    )


def celu(x, a):
    def f(env):
        if env[a] == 0:
            raise Undefined
        return [v if v > 0 else env[a] * mp.expm1(v / env[a]) for v in x.at(env)]

    return E(f"(aten::celu {x.text} {a})", f)


def threshold(x, a, b):
    return E(
        f"(aten::threshold {x.text} {a} {b})",
        lambda env: [v if v > env[a] else env[b] for v in x.at(env)],
    )


def lerp(x, y, a):
    return E(
        f"(aten::lerp.Scalar {x.text} {y.text} {a})",
        lambda env: [p + env[a] * (q - p) for p, q in zip(x.at(env), y.at(env))],
    )


def power(x, a):
    def f(env):
        out = []
        for v in x.at(env):
            if v < 0 and env[a] != int(env[a]) or v == 0 and env[a] < 0:
                raise Undefined
            out.append(mp.mpf(v) ** env[a] if v != 0 or env[a] != 0 else mp.mpf(1))
        return out

    return E(f"(aten::pow.Tensor_Scalar {x.text} {a})", f)


def full_like(x, a):
    return E(f"(aten::full_like {x.text} {a})", lambda env: [env[a]] * N)


def attribute_rules(rng):
    u, v, w = (leaf(rng, n) for n in ("x", "y", "z"))
    e = expression(rng, "xy", rng.randrange(2))
    return [
        ("amax-scale", largest(muls(e, "s")), muls(largest(e), "s")),
        ("amax-shift", largest(adds(e, "s")), adds(largest(e), "s")),
        ("amin-scale", smallest(muls(e, "s")), muls(smallest(e), "s")),
        ("amax-neg", largest(neg(e)), neg(smallest(e))),
        ("sum-scale", total(muls(e, "s")), muls(total(e), "s")),
        ("relu-scale", relu(muls(e, "s")), muls(relu(e), "s")),
        ("abs-scale", absolute(muls(e, "s")), muls(absolute(e), "s")),
        ("abs-divide", absolute(divs(e, "s")), divs(absolute(e), "s")),
        ("max-scale", maximum(muls(u, "s"), muls(v, "s")), muls(maximum(u, v), "s")),
        ("max-shift", maximum(adds(u, "s"), adds(v, "s")), adds(maximum(u, v), "s")),
        ("clamp-order", clamp(e, "s", "t"), clamp_max(clamp_min(e, "s"), "t")),
        ("clamp-disorder", clamp(e, "s", "t"), clamp_min(clamp_max(e, "t"), "s")),
        ("clamp-exchanged", clamp(e, "s", "t"), clamp(e, "t", "s")),
        (
            "clamp-neg",
            neg(clamp(e, "s", "t")),
            E(
                f"(aten::neg {clamp(e, 's', 't').text})",
                lambda env: neg(clamp(e, "s", "t")).at(env),
            ),
        ),
        ("clamp-twice", clamp(clamp(e, "s", "t"), "s", "t"), clamp(e, "s", "t")),
        ("clamp-max-max", clamp_max(clamp_max(e, "s"), "t"), clamp_max(clamp_max(e, "t"), "s")),
        ("clamp-min-forget", clamp_min(clamp_min(e, "s"), "t"), clamp_min(e, "t")),
        ("leaky-scale", leaky(muls(e, 2.0), "s"), muls(leaky(e, "s"), 2.0)),
        ("leaky-twice", leaky(leaky(e, "s"), "t"), leaky(leaky(e, "t"), "s")),
        ("leaky-as-max", leaky(e, "s"), maximum(e, muls(e, "s"))),
        ("leaky-as-sum", leaky(e, "s"), add(relu(e), muls(sub(e, relu(e)), "s"))),
        ("add-alpha", added(u, v, "s"), add(u, muls(v, "s"))),
        ("add-alpha-turned", added(u, v, "s"), added(v, u, "s")),
        ("add-alpha-chain", added(added(u, v, "s"), w, "t"), added(added(u, w, "t"), v, "s")),
        ("add-alpha-swap", added(added(u, v, "s"), w, "t"), added(added(u, v, "t"), w, "s")),
        ("addcmul", addcmul(u, v, w, "s"), add(u, muls(mul(v, w), "s"))),
        (
            "addcmul-square",
            addcmul(u, muls(v, "s"), muls(w, "s"), "t"),
            addcmul(u, muls(v, "t"), muls(w, "s"), "s"),
        ),
        ("addcmul-rolls", addcmul(u, muls(v, "s"), w, "t"), addcmul(u, muls(v, "t"), w, "s")),
        ("elu-scale", elu(e, "s"), muls(elu(e, "s"), 1.0)),
        ("elu-as-max", elu(e, "s"), add(relu(e), minimum(muls(e, 0.0), muls(expm1(e), "s")))),
        ("celu-elu", celu(e, "s"), elu(e, "s")),
        ("threshold-clamp", threshold(e, "s", "t"), maximum(e, full_like(e, "t"))),
        ("threshold-same", threshold(e, "s", "s"), clamp_min(e, "s")),
        ("lerp", lerp(u, v, "s"), add(muls(u, 1.0), muls(sub(v, u), "s"))),
        ("lerp-turned", lerp(u, v, "s"), lerp(v, u, "s")),
        ("pow-pow", power(power(e, "s"), "t"), power(power(e, "t"), "s")),
        (
            "pow-product",
            mul(power(exp(u), "s"), power(exp(u), "t")),
            power(power(exp(u), "t"), "s"),
        ),
        ("pow-exp", power(exp(tanh(u)), "s"), exp(muls(tanh(u), "s"))),
        ("pow-abs", power(absolute(e), "s"), absolute(power(e, "s"))),
        ("softmax-scale", softmax(muls(e, "s")), softmax(neg(muls(e, "s")))),
        ("softmax-shift", softmax(adds(e, "s")), softmax(e)),
        ("div-div", divs(divs(e, "s"), "t"), divs(divs(e, "t"), "s")),
        ("div-mul", muls(divs(e, "s"), "t"), divs(muls(e, "t"), "s")),
        ("div-mul-swap", muls(divs(e, "s"), "t"), muls(divs(e, "t"), "s")),
        ("sqrt-scale", sqrt(muls(square(e), "s")), muls(absolute(e), "s")),
        ("shift-scale", muls(adds(e, "s"), "t"), adds(muls(e, "t"), "s")),
        ("order", maximum(full_like(e, "s"), full_like(e, "t")), full_like(e, "t")),
        ("both", adds(muls(e, "s"), "t"), adds(muls(e, "t"), "s")),
        ("difference", subs(adds(e, "s"), "t"), subs(adds(e, "t"), "s")),
        ("product", muls(muls(e, "s"), "t"), muls(muls(e, "t"), "s")),
        ("square-attr", muls(muls(e, "s"), "s"), muls(absolute(muls(e, "s")), "s")),
        (
            "sign-attr",
            sigmoid(muls(e, "s")),
            sub(
                E(f"(aten::ones_like {e.text})", lambda env: [mp.mpf(1)] * N),
                sigmoid(neg(muls(e, "s"))),
            ),
        ),
    ]


def attrs_rule(rng, i):
    name, a, b = rng.choice(attribute_rules(rng))
    used = [n for n in "st" if f" {n})" in a.text + b.text or f" {n} " in a.text + b.text]
    if rng.randrange(3) == 0:
        w = leaf(rng, "xz")
        how = rng.choice([tanh, lambda t: add(t, w), neg, lambda t: muls(t, -2.0)])
        a, b = how(a), how(b)
    return Rule(f"attrs-{i}-{name}", a, b, vars="xyz", attrs=[(n, "float") for n in used])


# ---- complex numbers ----


def conj(x):
    return E(f"(aten::conj_physical {x.text})", lambda env: [mp.conj(v) for v in x.at(env)])


angle = call1("angle", lambda a: mp.arg(a))
cplx_abs = call1("abs", lambda a: mp.mpc(abs(a)))
cexp, clog, csqrt = (
    call1("exp", mp.exp),
    call1("log", safely(mp.log, lambda a: a != 0)),
    call1("sqrt", mp.sqrt),
)
cinv = call1("reciprocal", safely(lambda a: 1 / a, lambda a: a != 0))
csq = lambda z: mul(z, z)


def cpow(x, a):
    def f(env):
        c, v = number(a, env), x.at(env)
        if c < 0 and 0 in v:
            raise Undefined
        return [mp.exp(c * mp.log(z)) if z != 0 else z for z in v]

    return E(f"(aten::pow.Tensor_Scalar {x.text} {a})", f)


def complex_rules(rng):
    z, w = var("x"), var("y")
    c = rng.choice([2.0, -1.0, 0.5, -3.0])
    p = rng.choice([0.5, 1.5, -0.5, 0.25, 2.5])
    n = float(rng.choice([2, 3, -1, -2]))
    small = lambda t: muls(t, 0.01)
    return [
        ("log-exp", clog(cexp(z)), z),
        ("exp-log", cexp(clog(z)), z),
        ("log-product", clog(mul(z, w)), add(clog(z), clog(w))),
        ("log-quotient", clog(div(z, w)), sub(clog(z), clog(w))),
        ("log-scale", clog(muls(z, c)), add(clog(z), clog(muls(cexp(muls(z, 0.0)), c)))),
        ("log-inverse", clog(cinv(z)), neg(clog(z))),
        ("sqrt-square", csqrt(csq(z)), z),
        ("square-sqrt", csq(csqrt(z)), z),
        ("sqrt-product", csqrt(mul(z, w)), mul(csqrt(z), csqrt(w))),
        ("sqrt-quotient", csqrt(div(z, w)), div(csqrt(z), csqrt(w))),
        ("sqrt-exp", csqrt(cexp(z)), cexp(muls(z, 0.5))),
        ("sqrt-log", csqrt(z), cexp(muls(clog(z), 0.5))),
        ("sqrt-conj", csqrt(conj(z)), conj(csqrt(z))),
        ("log-conj", clog(conj(z)), conj(clog(z))),
        ("exp-conj", cexp(conj(z)), conj(cexp(z))),
        ("angle-conj", angle(conj(z)), neg(angle(z))),
        ("angle-neg", angle(neg(z)), neg(angle(z))),
        ("angle-product", angle(mul(z, w)), add(angle(z), angle(w))),
        ("angle-inverse", angle(cinv(z)), neg(angle(z))),
        ("angle-square", angle(csq(z)), muls(angle(z), 2.0)),
        ("angle-scale", angle(muls(z, c)), angle(z)),
        ("abs-product", absolute(mul(z, w)), mul(absolute(z), absolute(w))),
        ("abs-conj", absolute(conj(z)), absolute(z)),
        ("abs-sum", absolute(add(z, w)), add(absolute(z), absolute(w))),
        ("abs-square", absolute(csq(z)), square(absolute(z))),
        ("pow-product", cpow(mul(z, w), p), mul(cpow(z, p), cpow(w, p))),
        ("pow-whole-product", cpow(mul(z, w), n), mul(cpow(z, n), cpow(w, n))),
        ("pow-pow", cpow(cpow(z, 2.0), p), cpow(z, 2 * p)),
        ("pow-pow-half", cpow(cpow(z, 0.5), 2.0), z),
        ("pow-sum", cpow(z, p + 1), mul(cpow(z, p), z)),
        ("pow-conj", cpow(conj(z), p), conj(cpow(z, p))),
        ("pow-attr", cpow(mul(z, w), "s"), mul(cpow(z, "s"), cpow(w, "s"))),
        ("pow-inverse", cpow(cinv(z), p), cinv(cpow(z, p))),
        (
            "small-log-exp",
            clog(cexp(small(cos(absolute_as_complex(z))))),
            small(cos(absolute_as_complex(z))),
        ),
        ("conj-product", conj(mul(z, w)), mul(conj(z), conj(w))),
        ("conj-square", mul(z, conj(z)), csq(cplx(z))),
        ("square-conj", csq(conj(z)), csq(z)),
        ("neg-sqrt", csqrt(neg(z)), neg(csqrt(z))),
        ("quotient", div(z, w), mul(z, cinv(w))),
        ("exp-sum", cexp(add(z, w)), mul(cexp(z), cexp(w))),
    ]


def absolute_as_complex(z):
    return mul(z, conj(z))


def cplx(z):
    return E(z.text, z.f)


def complex_rule(rng, i):
    name, a, b = rng.choice(complex_rules(rng))
    attrs = [("s", "float")] if " s)" in a.text + b.text else []
    real = "angle" in name or name.startswith("abs")
    if not real and rng.randrange(3) == 0:
        how = rng.choice([neg, lambda t: muls(t, 2.0), lambda t: add(t, var("y")), conj])
        a, b = how(a), how(b)
    return Rule(f"complex-{i}-{name}", a, b, vars="xy", kind="c", attrs=attrs)


# ---- literals that differ in their last places ----


def literals_rule(rng, i):
    """A number that the other side makes of two, exactly or some last places beside it."""
    x, y = var("x"), var("y")
    c, a = rng.choice([2.0, 3.0, 5.0, 7.0, 0.5, 11.0]), rng.choice([1.0, 2.0, 4.0, 0.25, 1.5])
    d = c * a * (1 + rng.choice([0, 0, 4, 6, 40, 1000]) * 2.0**-52)
    inner, outer = rng.choice([(y, neg), (square(y), square), (sin(y), tanh), (exp(y), sin)])
    make = rng.choice(
        [
            lambda: (div(x, adds(inner, a)), div(muls(x, c), adds(muls(inner, c), d))),
            lambda: (outer(muls(adds(inner, a), c)), outer(adds(muls(inner, c), d))),
            lambda: (mul(x, muls(muls(inner, c), a)), mul(muls(inner, d), x)),
            lambda: (sub(x, muls(adds(inner, a), c)), subs(sub(x, muls(inner, c)), d)),
        ]
    )
    lhs, rhs = make()
    return Rule(f"literals-{i}", lhs, rhs, vars="xy")


# ---- functions that are flat where they lie ----


def flat_sides(rng):
    """A function that is one number for all that float64 tells, and still moves with its variable:
    which stands in the side a second time, is taken beside the number that the function is near,
    or is another one on the other side."""
    u, v = rng.sample([var("x"), var("y"), tanh(var("x"))], 2)
    c, outer = rng.choice([3e7, 1e8, 1e9, 2e12]), [rng.choice([tanh, sigmoid]) for _ in range(2)]
    last = rng.choice([lambda t: t, exp, sin, lambda t: adds(square(t), 0.5)])

    def far(t):
        t = log(adds(exp(tanh(t)), c))
        for f in outer:
            t = f(t)
        return last(t)

    flat, still = far(u), far(muls(u, 0.0))
    mp.mp.dps = DIGITS
    near = float(still.at({"x": [mp.mpf(0)] * N, "y": [mp.mpf(0)] * N})[0])
    one = adds(muls(u, 0.0), near)
    return rng.choice(
        [
            (sub(u, flat), sub(u, still)),
            (sub(u, flat), sub(u, one)),
            (sub(v, flat), sub(v, one)),
            (mul(v, flat), mul(v, still)),
            (div(v, adds(flat, 1.0)), div(v, adds(still, 1.0))),
            (add(add(u, v), flat), add(add(u, v), far(v))),
            (sub(u, flat), neg(sub(flat, u))),
            (mul(v, add(flat, flat)), muls(mul(flat, v), 2.0)),
            (mul(add(u, v), flat), add(mul(u, flat), mul(v, flat))),
            (sub(v, far(add(u, v))), sub(v, far(add(v, u)))),
        ]
    )


def flat_rule(rng, i):
    lhs, rhs = flat_sides(rng)
    return Rule(f"flat-{i}", lhs, rhs, vars="xy")


def roles_rule(rng, i):
    """A function that both sides have, -1 or 1 on whatever is drawn, in other roles: it may be its
    cube, or the inverse of itself. Between its ends it is none of these."""
    c = rng.choice([50.0, 1e3, 1e5, 1e6, 1e9])
    x, y = var("x"), var("y")
    f = rng.choice([tanh, lambda t: subs(muls(sigmoid(t), 2.0), 1.0)])(adds(x, c))
    cube = mul(f, mul(f, f))
    lhs, rhs = rng.choice(
        [
            (mul(y, f), mul(y, cube)),
            (mul(y, square(f)), mul(y, square(square(f)))),
            (div(y, f), mul(y, f)),
            (add(f, f), add(f, cube)),
            (sub(y, f), sub(y, cube)),
            (mul(y, f), mul(f, y)),
            (sub(mul(y, f), mul(x, f)), mul(sub(y, x), f)),
        ]
    )
    return Rule(f"roles-{i}", lhs, rhs, vars="xy", points=[mp.mpf(-c)])


MAKERS = {
    "absorb": absorb_rule,
    "attrs": attrs_rule,
    "complex": complex_rule,
    "literals": literals_rule,
    "flat": flat_rule,
    "roles": roles_rule,
}


def generate(seed, count, only):
    rng = random.Random(seed)
    out = []
    kinds = [only] if only else list(MAKERS)
    while len(out) < count:
        rule = MAKERS[kinds[len(out) % len(kinds)]](rng, len(out))
        t = truth(rule, rng)
        if t is not None:
            out.append((rule, t))
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--isomer", default="build/isomer")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=400)
    p.add_argument("--only", choices=list(MAKERS))
    p.add_argument("--keep", help="write the rules here")
    a = p.parse_args()
    rules = generate(a.seed, a.count, a.only)
    text = "\n".join(r.text() for r, _ in rules)
    if a.keep:
        with open(a.keep, "w") as f:
            f.write(text)
    with tempfile.NamedTemporaryFile("w", suffix=".rules") as f:
        f.write(text)
        f.flush()
        done = subprocess.run(
            [a.isomer, "rules", "check", f.name, "--json", "-"], capture_output=True, text=True
        )
    if done.returncode == 2:
        print(done.stderr)
        return 1
    status = {r["name"]: r for r in json.loads(done.stdout)["rules"]}
    wrong, unknown = [], []
    for r, t in rules:
        got = status[r.name]["status"]
        if t and r.kind == "c" and "inverse" in r.name and parts_on_cut(r):
            if got in ("tested", "proved"):
                wrong.append((r, False, got))
            continue
        if (t and got == "refuted") or (not t and got in ("tested", "proved")):
            wrong.append((r, t, got))
        elif t and got == "unknown":
            unknown.append(r)
    n_true = sum(t for _, t in rules)
    for r, t, got in wrong:
        print(
            (
                f"WRONG {'true' if t else 'false'} and {got}: {r.text()}\n  "
                f"{status[r.name].get('reason')}"
            )
        )
    for r in unknown:
        print(f"unknown {r.name}: {status[r.name].get('reason')}")
    counts = {}
    for r, t in rules:
        key = ("true" if t else "false", status[r.name]["status"])
        counts[key] = counts.get(key, 0) + 1
    print(
        (
            f"adversary: {len(rules)} rules, {n_true} true: {len(wrong)} wrong, {len(unknown)} "
            f"unknown "
            f"of the true ones;"
        ),
        ", ".join(f"{a} {b} {n}" for (a, b), n in sorted(counts.items())),
    )
    return 1 if wrong or len(unknown) > 0.1 * max(n_true, 1) else 0


if __name__ == "__main__":
    sys.exit(main())
