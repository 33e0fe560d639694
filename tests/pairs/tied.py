"""Rules that hold because variables are tied: to others (a table and its halves), or in themselves
(heads that repeat, a mask that hides no row). Over free variables they are false, so that the
frontier must be opened down to what ties them; the faulty twin of each is tied in another way. And
tables read by index.Tensor, where an index below 0 counts from the end."""

from attention import D, H, T, C, angles, below, eager, heads, merge
from dsl import *


def twins(name, why, left, right, wrong, faulty=DIFFERENT):
    """right(g, fault) is as left(g) is; not so with the fault."""
    pair(name, EQUIVALENT, why, left, lambda g: right(g, False))
    pair(name + ", not so", faulty, wrong, left, lambda g: right(g, True))


# ---- tables whose halves are one ----


def tables(g, how="cat"):
    """[T, D] cosines and sines, each frequency twice."""
    return [
        g.cat([f, f], -1) if how == "cat" else f.repeat_interleave(2, -1)
        for f in (lambda a: (a.cos(), a.sin()))(angles(g))
    ]


def by_halves(x, c, s):
    lo, hi = x.chunk(2, -1)
    return x * c + x.g.cat([-hi, lo], -1) * s


def by_parts(x, c, s, second=False):
    """`second`: of the sines the half that the cosines are not taken from."""
    n = x.shape[-1] // 2
    lo, hi = x.chunk(2, -1)
    c, s = c.slice(-1, 0, n), s.slice(-1, n) if second else s.slice(-1, 0, n)
    return x.g.cat([lo * c - hi * s, hi * c + lo * s], -1)


def complex_parts(x, c, s):
    n = x.shape[-1] // 2
    c, s = c.slice(-1, 0, n), s.slice(-1, 0, n)
    pairs = x.unflatten(-1, (2, n)).transpose(-1, -2)
    z = pairs.op("contiguous", [pairs]).view_as_complex()
    return z.mul(c.complex(s)).view_as_real().transpose(-1, -2).flatten(-2, -1)


FULL = lambda g: by_halves(g.x(1, H, T, D), *tables(g))
twins(
    "halves of a full table",
    "both halves are the same",
    FULL,
    lambda g, fault: by_parts(g.x(1, H, T, D), *tables(g, "interleave" if fault else "cat")),
    "the halves of interleaved frequencies are not",
)
twins(
    "the other half of the sines",
    "both halves are the same",
    FULL,
    lambda g, fault: by_parts(
        g.x(1, H, T, D), *tables(g, "interleave" if fault else "cat"), second=True
    ),
    "the halves of interleaved frequencies are not",
)
twins(
    "complex numbers from a full table",
    "both halves are the same",
    FULL,
    lambda g, fault: complex_parts(g.x(1, H, T, D), *(tables(g)[::-1] if fault else tables(g))),
    "sines for cosines",
)


def stored(g):
    """Angles of width D, as captured numbers."""
    return [
        g.const(n, Data((T, D), [f(i // D * 0.3 ** (i % (D // 2))) for i in range(T * D)]))
        for n, f in (("cos", math.cos), ("sin", math.sin))
    ]


pair(
    "a stored table and its half",
    EQUIVALENT,
    "constants keep their captured values",
    lambda g: by_halves(g.x(1, H, T, D), *stored(g)),
    lambda g: by_parts(g.x(1, H, T, D), *stored(g)),
)
pair(
    "a stored table, exchanged",
    DIFFERENT,
    "sines for cosines",
    lambda g: by_halves(g.x(1, H, T, D), *stored(g)),
    lambda g: by_parts(g.x(1, H, T, D), *stored(g)[::-1]),
)


# ---- heads that repeat ----


def grouped(g, repeat):
    """Two heads for keys and values."""
    x = g.x(1, T, C)
    q, k, v = (
        heads(x.linear(g.param("q", C, C))),
        *[heads(x.linear(g.param(n, 2 * D, C)), 2) for n in "kv"],
    )
    return merge(eager(q, repeat(k), repeat(v), lambda s: s.masked_fill(~below(g), -math.inf)))


def one_by_one(g, of):
    """Each head by itself, with the keys and values of head of(h)."""
    x = g.x(1, T, C)
    q, k, v = (
        heads(x.linear(g.param("q", C, C))),
        *[heads(x.linear(g.param(n, 2 * D, C)), 2) for n in "kv"],
    )
    part = lambda t, h: t.slice(1, h, h + 1)
    return merge(
        g.cat(
            [
                eager(
                    part(q, h),
                    part(k, of(h)),
                    part(v, of(h)),
                    lambda s: s.masked_fill(~below(g), -math.inf),
                )
                for h in range(H)
            ],
            1,
        )
    )


EACH_TWICE = lambda g: grouped(g, lambda t: t.repeat_interleave(2, 1))
twins(
    "heads one by one",
    "head h reads h / 2",
    EACH_TWICE,
    lambda g, fault: one_by_one(g, (lambda h: h % 2) if fault else lambda h: h // 2),
    "head h reads h mod 2",
)
twins(
    "groups expanded",
    "each head twice",
    EACH_TWICE,
    lambda g, fault: grouped(
        g,
        lambda t: (
            t.unsqueeze(1).expand(1, 2, 2, T, D) if fault else t.unsqueeze(2).expand(1, 2, 2, T, D)
        ).reshape(1, H, T, D),
    ),
    "all heads twice",
)
twins(
    "groups as a batch",
    "queries of a group side by side",
    EACH_TWICE,
    lambda g, fault: (
        lambda x: (
            lambda q, k, v: merge(
                (q.matmul(k.unsqueeze(2).transpose(-1, -2)) * D**-0.5)
                .masked_fill(~below(g), -math.inf)
                .softmax(-1)
                .matmul(v.unsqueeze(2))
                .reshape(1, H, T, D)
            )
        )(
            (lambda q: q.view(1, 2, 2, T, D).transpose(1, 2) if fault else q.view(1, 2, 2, T, D))(
                heads(x.linear(g.param("q", C, C)))
            ),
            *[heads(x.linear(g.param(n, 2 * D, C)), 2) for n in "kv"],
        )
    )(g.x(1, T, C)),
    "heads of a group exchanged",
)


# ---- masks that hide no row, positions that are in order ----

HIDDEN = lambda g: g.x(T, T).masked_fill(~below(g), -math.inf).softmax(-1)
twins(
    "zeros where the mask hides",
    "no row is hidden as a whole",
    HIDDEN,
    lambda g, fault: HIDDEN(g).masked_fill(below(g) if fault else ~below(g), 0.0),
    "zeros where it shows",
)
twins(
    "divided by what is seen",
    "each row sees itself",
    lambda g: g.x(T, T).mul(below(g).to(f32)).sum(-1).div(below(g).to(f32).sum(-1)),
    lambda g, fault: (
        g.x(T, T)
        .mul(below(g).to(f32))
        .sum(-1)
        .div(below(g).to(f32).sum(-1).clamp_min(2.0 if fault else 1.0))
    ),
    "the first row sees one",
)
twins(
    "rows in order",
    "0, 1, 2, ...",
    lambda g: g.param("p", 8, 4).slice(0, 0, T),
    lambda g, fault: g.param("p", 8, 4).index(g.arange(T) * 2 - g.arange(T) + (1 if fault else 0)),
    "one row late",
)

# ---- indices that count from the end ----

IDS = [3, 1, 7, 1, 5, 0, 2, 6]
READ = lambda g: g.param("e", 8, 4).embedding(g.ints("ids", IDS, 8))
twins(
    "a table read by index",
    "no id is below 0",
    READ,
    lambda g, fault: (lambda i: g.param("e", 8, 4).index(i.rsub(7) if fault else i))(
        g.ints("ids", IDS, 8)
    ),
    "from the other end",
)
twins(
    "ids counted from the end",
    "id - 8",
    READ,
    lambda g, fault: g.param("e", 8, 4).index(g.ints("ids", IDS, 8) - (7 if fault else 8)),
    "one row further",
)
twins(
    "ids counted from the end of a longer table",
    "the first row is the last",
    lambda g: g.param("e", 9, 4).embedding(g.ints("ids", IDS, 9) + 0),
    lambda g, fault: g.param("e", 9, 4).index(g.ints("ids", IDS, 9) - (8 if fault else 9)),
    "one row further",
)
twins(
    "columns read by index",
    "along the last dimension",
    lambda g: g.param("e", 4, 8).index_select(1, g.ints("ids", IDS, 8)),
    lambda g, fault: g.param("e", 4, 8).index(None, g.ints("ids", IDS, 8) - (1 if fault else 0)),
    "-1 is the last column",
)
