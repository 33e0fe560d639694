"""What is equal as real numbers, and compared, rounded or blown up: float64 makes other numbers of
the two sides of an identity, and a comparison of these tells it. Rounding alone shows no
difference, nor may it end in an error. The twin differs in real numbers, by little."""

from dsl import NOT_DIFFERENT, NOT_EQUIVALENT, f32
from edges import both

IDENTITIES = {
    "exp and log": (lambda x: x.exp().log(), lambda x: x),
    "sum of a softmax": (
        lambda x: x.softmax(-1).sum(-1, True).expand(4, 8),
        lambda x: x.mul(0.0).add(1.0),
    ),
    "root and square": (lambda x: (lambda r: r * r)((x * x + 1.0).sqrt()), lambda x: x * x + 1.0),
    "sine and cosine": (
        lambda x: x.sin().square() + x.cos().square(),
        lambda x: x.mul(0.0).add(1.0),
    ),
    "a third, three times": (lambda x: x / 3.0 * 3.0, lambda x: x),
}
COMPARISONS = {
    "eq": (lambda a, b: a.eq(b), 1.0),
    "ge": (lambda a, b: a.ge(b), 1.0),
    "lt": (lambda a, b: a.lt(b), 0.0),
    "ne": (lambda a, b: a.ne(b), 0.0),
}
for _what, (_one, _other) in IDENTITIES.items():
    for _op, (_compare, _is) in COMPARISONS.items():
        both(
            "%s: %s" % (_what, _op),
            NOT_DIFFERENT,
            "it is so for every number",
            lambda x, s, a=_one, b=_other, c=_compare, v=_is: (
                x.mul(0.0).add(v) if s else c(a(x), b(x)).to(f32)
            ),
        )
    both(
        "%s: a little more" % _what,
        NOT_EQUIVALENT,
        "by a millionth",
        lambda x, s, a=_one, b=_other: x.mul(0.0).add(1.0) if s else a(x).le(b(x) - 1e-6).to(f32),
    )

CANCELLED = {
    "times 1e20": lambda z: z * 1e20,
    "its sign": lambda z: z.sign(),
    "its floor": lambda z: z.mul(1e20).floor(),
    "root of its size": lambda z: z.mul(1e25).abs().sqrt(),
    "clamped": lambda z: z.mul(1e20).clamp(-1.0, 1.0),
}
for _what, _made in CANCELLED.items():
    both(
        "what cancels, %s" % _what,
        NOT_DIFFERENT,
        "it is 0",
        lambda x, s, f=_made: f(x * 0.0) if s else f(x * 3.0 - x - x - x),
    )
    both(
        "what does not cancel, %s" % _what,
        NOT_EQUIVALENT,
        "it is x",
        lambda x, s, f=_made: f(x * 0.0) if s else f(x * 3.0 - x - x),
    )
