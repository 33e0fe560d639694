"""Recurrences as loops, products with triangles, and chunks: state spaces, linear attention,
decays, sums."""

from refactoring import *

T, N, D = 6, 3, 4

# ---- h_t = a_t h_{t-1} + b_t ----


def loop(a, b, d=0, first=None):
    h, out = first, []
    for t in range(a.shape[d]):
        x = b.select(d, t)
        h = x if h is None else a.select(d, t) * h + x
        out.append(h)
    return a.g.stack(out, d)


def decays(g):
    """Decays between 0 and 1, and what is added."""
    return g.x(T, N, name="a").sigmoid(), g.x(T, N, name="b")


def log_decays(g):
    return g.x(T, N, name="a"), g.x(T, N, name="b")


def weights(la, t=None):
    """[t, t, N]: the product of decays from s + 1 to t, by differences of cumulated logs; 0
    above."""
    t = t or la.shape[0]
    c = la.cumsum(0)
    d = c.unsqueeze(1) - c.unsqueeze(0)
    return d.masked_fill(~causal(la.g, t).unsqueeze(2), -math.inf).exp()


scan = of(log_decays)
scan(
    "linear recurrence by cumulated logs",
    "one sum with decays",
    lambda l, b: loop(l.exp(), b),
    lambda l, b: (weights(l) * b.unsqueeze(0)).sum(1),
    (
        "decays of one step more",
        lambda l, b: (
            (
                lambda c: (
                    (c.unsqueeze(1) - c.unsqueeze(0) + l.unsqueeze(0))
                    .masked_fill(~causal(l.g, T).unsqueeze(2), -math.inf)
                    .exp()
                )
            )(l.cumsum(0))
            * b.unsqueeze(0)
        ).sum(1),
    ),
)
scan(
    "linear recurrence divided by its decays",
    "cumsum(b / A) A",
    lambda l, b: loop(l.exp(), b),
    lambda l, b: (lambda c: (b * (-c).exp()).cumsum(0) * c.exp())(l.cumsum(0)),
)


def chunked(l, b, n, carried=True):
    g, out, h = l.g, [], None
    for a in range(0, T, n):
        lc, bc = l.slice(0, a, a + n), b.slice(0, a, a + n)
        y = (weights(lc, n) * bc.unsqueeze(0)).sum(1)
        if h is not None and carried:
            y = y + lc.cumsum(0).exp() * h
        h = y.select(0, n - 1)
        out.append(y)
    return g.cat(out, 0)


for _n in 2, 3:
    scan(
        "linear recurrence in chunks of %d" % _n,
        "a state between chunks",
        lambda l, b: loop(l.exp(), b),
        lambda l, b, n=_n: chunked(l, b, n),
        ("no state carried", lambda l, b: chunked(l, b, 2, False)) if _n == 2 else None,
    )


def doubled(a, b):
    """Hillis and Steele's: pairs (a, b) combined over distances 1, 2, 4."""
    d = 1
    while d < T:
        pa, pb = (
            pad(a.slice(0, 0, T - d), (0, 0, d, 0), 1.0),
            pad(b.slice(0, 0, T - d), (0, 0, d, 0)),
        )
        a, b = a * pa, b + a * pb
        d *= 2
    return b


of(decays)("linear recurrence by doubling", "an associative scan", lambda a, b: loop(a, b), doubled)
of(decays)(
    "linear recurrence, two steps at once",
    "the steps composed",
    lambda a, b: loop(a, b).slice(0, 1, INF, 2),
    lambda a, b: loop(
        a.slice(0, 1, INF, 2) * a.slice(0, 0, INF, 2),
        b.slice(0, 1, INF, 2) + a.slice(0, 1, INF, 2) * b.slice(0, 0, INF, 2),
    ),
    (
        "one decay left out",
        lambda a, b: loop(
            a.slice(0, 1, INF, 2),
            b.slice(0, 1, INF, 2) + a.slice(0, 1, INF, 2) * b.slice(0, 0, INF, 2),
        ),
    ),
)
of(decays)(
    "gated recurrence",
    "a h + (1 - a) x and x + a (h - x)",
    lambda a, b: loop(a, (1.0 - a) * b),
    lambda a, b: (lambda f: f)(moving(a, b)),
)


def moving(a, b):
    h, out = None, []
    for t in range(T):
        x, w = b.select(0, t), a.select(0, t)
        h = x - w * x if h is None else x + w * (h - x)
        out.append(h)
    return a.g.stack(out, 0)


of(lambda g: (g.x(T, N),))(
    "exponential moving average",
    "a constant decay",
    lambda x: loop(x.g.full((T, N), 0.75), x * 0.25),
    lambda x: x.g.const(
        "powers",
        Data(
            (T, T),
            [0.25 * 0.75 ** (i // T - i % T) if i % T <= i // T else 0.0 for i in range(T * T)],
        ),
    ).matmul(x),
    (
        "the first counted whole",
        lambda x: loop(
            x.g.full((T, N), 0.75), x.g.cat([x.slice(0, 0, 1), x.slice(0, 1) * 0.25], 0)
        ),
    ),
)

# ---- cumulated sums ----

sums = of(lambda g: (g.x(T, N),))
sums(
    "cumulated sum by a triangle",
    "tril of ones",
    lambda x: x.cumsum(0),
    lambda x: x.g.ones(T, T).tril().matmul(x),
    ("without the row itself", lambda x: x.g.ones(T, T).tril(-1).matmul(x)),
)
sums(
    "cumulated sum by a loop",
    "row by row",
    lambda x: x.cumsum(0),
    lambda x: loop(x.g.ones(T, N), x),
)
sums(
    "cumulated sum in blocks",
    "totals of the blocks before",
    lambda x: x.cumsum(0),
    lambda x: (
        lambda y: (
            y.cumsum(1) + pad(y.sum(1).cumsum(0).slice(0, 0, 2), (0, 0, 1, 0)).unsqueeze(1)
        ).view(T, N)
    )(x.view(3, 2, N)),
    (
        "totals with the block itself",
        lambda x: (lambda y: (y.cumsum(1) + y.sum(1).cumsum(0).unsqueeze(1)).view(T, N))(
            x.view(3, 2, N)
        ),
    ),
)
sums(
    "sum of what comes after",
    "flipped",
    lambda x: x.flip(0).cumsum(0).flip(0),
    lambda x: x.sum(0, True) - x.cumsum(0) + x,
)
sums(
    "cumulated sum before each",
    "shifted",
    lambda x: x.cumsum(0) - x,
    lambda x: pad(x, (0, 0, 1, 0)).slice(0, 0, T).cumsum(0),
)
sums(
    "segment sums",
    "Mamba 2's segsum",
    lambda x: (
        (lambda c: c.unsqueeze(1) - c.unsqueeze(0))(x.cumsum(0))
        .masked_fill(~causal(x.g, T).unsqueeze(2), -math.inf)
        .exp()
    ),
    lambda x: (
        lambda m: (
            (
                x.unsqueeze(1)
                .expand(T, T, N)
                .masked_fill(~x.g.ones(T, T, dtype=boolean).tril(-1).unsqueeze(2), 0.0)
            )
            .cumsum(0)
            .masked_fill(m, -math.inf)
            .exp()
        )
    )(~causal(x.g, T).unsqueeze(2)),
    (
        "with the diagonal",
        lambda x: (
            lambda m: (
                (x.unsqueeze(1).expand(T, T, N).masked_fill(~causal(x.g, T).unsqueeze(2), 0.0))
                .cumsum(0)
                .masked_fill(m, -math.inf)
                .exp()
            )
        )(~causal(x.g, T).unsqueeze(2)),
    ),
)
sums(
    "cumulated product by logs",
    "of positive numbers",
    lambda x: cumprod(x.exp(), 0),
    lambda x: x.cumsum(0).exp(),
)
sums(
    "running mean",
    "divided by the count",
    lambda x: x.cumsum(0) / x.g.arange(1, T + 1).to(f32).unsqueeze(1),
    lambda x: (lambda m: m / m.sum(1, True))(x.g.ones(T, T).tril()).matmul(x),
    ("divided by all", lambda x: x.cumsum(0) / float(T)),
)
sums(
    "differences of a cumulated sum",
    "what was summed",
    lambda x: x.exp(),
    lambda x: (lambda c: c - pad(c.slice(0, 0, T - 1), (0, 0, 1, 0)))(x.exp().cumsum(0)),
)
sums(
    "moving sum of three",
    "differences of cumulated sums, or shifts",
    lambda x: x + pad(x, (0, 0, 1, 0)).slice(0, 0, T) + pad(x, (0, 0, 2, 0)).slice(0, 0, T),
    lambda x: (lambda c: c - pad(c, (0, 0, 3, 0)).slice(0, 0, T))(x.cumsum(0)),
)

# ---- linear attention ----


def three(g):
    return [g.x(T, D, name=n) for n in "qkv"]


def recurrent(q, k, v, decay=None):
    s, out = None, []
    for t in range(T):
        kv = outer(k.select(0, t), v.select(0, t))
        s = kv if s is None else (s * decay if decay else s) + kv
        out.append(q.select(0, t).unsqueeze(0).mm(s).squeeze(0))
    return q.g.stack(out, 0)


def parallel(q, k, v, decay=None, late=0):
    s = q.mm(k.t())
    if decay:
        s = s * q.g.const(
            "decays",
            Data(
                (T, T),
                [
                    decay ** (i // T - i % T + late) if i % T <= i // T else 0.0
                    for i in range(T * T)
                ],
            ),
        )
        return s.mm(v)
    return s.tril().mm(v)


def in_chunks(q, k, v, n=2, decay=None, late=0):
    g, s, out = q.g, None, []
    for a in range(0, T, n):
        qc, kc, vc = (x.slice(0, a, a + n) for x in (q, k, v))
        p = qc.mm(kc.t()).tril()
        if decay:
            p = p * g.const(
                "d%d" % a, Data((n, n), [decay ** max(0, i // n - i % n) for i in range(n * n)])
            )
        y = p.mm(vc)
        if s is not None:
            r = qc.mm(s)
            y = y + (
                r * g.const("r%d" % a, Data((n, 1), [decay ** (i + 1 + late) for i in range(n)]))
                if decay
                else r
            )
        kd = (
            kc * g.const("k%d" % a, Data((n, 1), [decay ** (n - 1 - i) for i in range(n)]))
            if decay
            else kc
        )
        s = kd.t().mm(vc) if s is None else (s * decay**n if decay else s) + kd.t().mm(vc)
        out.append(y)
    return g.cat(out, 0)


linear = of(three)
linear(
    "linear attention, recurrent",
    "a state of outer products",
    parallel,
    recurrent,
    ("without the token itself", lambda q, k, v: q.mm(k.t()).tril(-1).mm(v)),
)
for _n in 2, 3:
    linear(
        "linear attention in chunks of %d" % _n,
        "a state between chunks",
        parallel,
        lambda q, k, v, n=_n: in_chunks(q, k, v, n),
    )
linear(
    "linear attention by cumulated outer products",
    "one large cumsum",
    parallel,
    lambda q, k, v: (q.unsqueeze(2) * (k.unsqueeze(2) * v.unsqueeze(1)).cumsum(0)).sum(1),
)
linear(
    "linear attention without a mask",
    "k^T v first",
    lambda q, k, v: q.mm(k.t()).mm(v),
    lambda q, k, v: q.mm(k.t().mm(v)),
)
linear(
    "linear attention normalised",
    "by the sum of keys",
    lambda q, k, v: (lambda a, b: a.mm(b.t()).mm(v) / a.mm(b.sum(0).unsqueeze(1)))(
        q.exp(), k.exp()
    ),
    lambda q, k, v: (lambda p: (p / p.sum(-1, True)).mm(v))(q.exp().mm(k.exp().t())),
    (
        "by the sum of queries",
        lambda q, k, v: (lambda p: (p / p.sum(0, True)).mm(v))(q.exp().mm(k.exp().t())),
    ),
)
linear(
    "retention, recurrent",
    "RetNet's decay",
    lambda *a: parallel(*a, decay=0.5),
    lambda *a: recurrent(*a, decay=0.5),
    ("decayed before its use", lambda *a: parallel(*a, decay=0.5, late=1)),
)
linear(
    "retention in chunks",
    "RetNet's decay",
    lambda *a: parallel(*a, decay=0.5),
    lambda *a: in_chunks(*a, n=2, decay=0.5),
    ("one decay less between chunks", lambda *a: in_chunks(*a, n=2, decay=0.5, late=-1)),
)


def gated_scan(g):
    return [g.x(T, D, name=n) for n in "qkv"] + [g.x(T, D, name="f")]


def gated_loop(q, k, v, f, late=False):
    s, out = None, []
    for t in range(T):
        kv = outer(k.select(0, t), v.select(0, t))
        s = kv if s is None else s * f.select(0, t).sigmoid().unsqueeze(1) + kv
        out.append((q.select(0, t).unsqueeze(1) * s).sum(0))
    return q.g.stack(out, 0)


def gated_parallel(q, k, v, f):
    c = f.log_sigmoid().cumsum(0)
    p = ((q * c.exp()).mm((k * (-c).exp()).t())).tril()
    return p.mm(v)


of(gated_scan)(
    "gated linear attention",
    "decays in queries and keys",
    gated_loop,
    gated_parallel,
    ("decays in the keys' values", lambda q, k, v, f: gated_parallel(q, k, v * f.sigmoid(), f)),
)


def delta(g):
    return [g.x(3, D, name=n) for n in "qkv"] + [g.x(3, 1, name="beta").sigmoid()]


def delta_loop(q, k, v, b, how):
    s, out = None, []
    for t in range(3):
        kt, vt, bt = k.slice(0, t, t + 1), v.slice(0, t, t + 1), b.slice(0, t, t + 1)
        if s is None:
            s = kt.t().mm(vt * bt)
        elif how == "error":
            s = s + kt.t().mm((vt - kt.mm(s)) * bt)
        else:
            s = (kt.g.op("eye", [D], [((D, D), f32)])[0] - kt.t().mm(kt) * bt).mm(s) + kt.t().mm(
                vt
            ) * bt
        out.append(q.slice(0, t, t + 1).mm(s))
    return q.g.cat(out, 0)


of(delta)(
    "delta rule",
    "the error, or a reflection",
    lambda *a: delta_loop(*a, "error"),
    lambda *a: delta_loop(*a, "matrix"),
)

# ---- state spaces ----


def mamba(g):
    return (
        g.x(T, D, name="x"),
        g.x(T, D, name="dt"),
        g.param("A", D, N),
        g.x(T, N, name="B"),
        g.x(T, N, name="C"),
        g.param("Dskip", D),
    )


def selective(x, dt, A, B, Cc, skip, how):
    g, d = x.g, dt.exp()
    a = -A.exp()
    if how in ("loop", "no skip"):
        h, out = None, []
        for t in range(T):
            xt, dtt = x.select(0, t).unsqueeze(1), d.select(0, t).unsqueeze(1)
            bx = dtt * xt * B.select(0, t).unsqueeze(0)
            h = bx if h is None else (dtt * a).exp() * h + bx
            out.append((h * Cc.select(0, t).unsqueeze(0)).sum(1))
        y = g.stack(out, 0)
        return y if how == "no skip" else y + x * skip
    if how == "all at once":
        da = (d.unsqueeze(2) * a).exp()
        db = (d * x).unsqueeze(2) * B.unsqueeze(1)
        h = loop(da, db)
        return h.matmul(Cc.unsqueeze(2)).squeeze(2) + skip * x
    if how == "einsum":
        da = g.einsum("td,dn->tdn", d, a).exp()
        db = g.einsum("td,tn->tdn", d * x, B)
        return g.einsum("tdn,tn->td", loop(da, db), Cc) + x * skip
    la = (d.unsqueeze(2) * a).cumsum(0)
    w = (
        (la.unsqueeze(1) - la.unsqueeze(0))
        .masked_fill(~causal(g, T).unsqueeze(2).unsqueeze(3), -math.inf)
        .exp()
    )
    h = (w * ((d * x).unsqueeze(2) * B.unsqueeze(1)).unsqueeze(0)).sum(1)
    return (h * Cc.unsqueeze(1)).sum(2) + x * skip


ssm = of(mamba)
for _h in "all at once", "einsum", "parallel":
    ssm(
        "selective scan, " + _h,
        "Mamba's",
        lambda *a: selective(*a, "loop"),
        lambda *a, h=_h: selective(*a, h),
        ("without the skip", lambda *a: selective(*a, "no skip")) if _h == "all at once" else None,
    )


def ssd(g):
    return g.x(T, D, name="x"), g.x(T, name="dt"), g.x(T, N, name="B"), g.x(T, N, name="C")


def dual(x, l, B, Cc, how, n=2):
    """One head with one decay per step: the recurrence, the quadratic form, and chunks."""
    g = x.g
    if how == "loop":
        h, out = None, []
        for t in range(T):
            bx = outer(x.select(0, t), B.select(0, t))
            h = bx if h is None else h * l.select(0, t).exp() + bx
            out.append((h * Cc.select(0, t)).sum(1))
        return g.stack(out, 0)
    c = l.cumsum(0)
    if how == "quadratic":
        w = (c.unsqueeze(1) - c.unsqueeze(0)).masked_fill(~causal(g, T), -math.inf).exp()
        return (w * Cc.mm(B.t())).mm(x)
    out, h = [], None
    for a in range(0, T, n):
        lc, bc, cc, xc = (t.slice(0, a, a + n) for t in (l, B, Cc, x))
        s = lc.cumsum(0)
        w = (s.unsqueeze(1) - s.unsqueeze(0)).masked_fill(~causal(g, n), -math.inf).exp()
        y = (w * cc.mm(bc.t())).mm(xc)
        if h is not None:
            y = y + cc.mm(h.t()) * s.exp().unsqueeze(1)
        end = s.slice(0, n - 1)
        new = (xc * (end - s).exp().unsqueeze(1)).t().mm(bc)
        h = new if h is None else (h if how == "not decayed" else h * end.exp()) + new
        out.append(y)
    return g.cat(out, 0)


for _h in "quadratic", "chunks":
    of(ssd)(
        "state space duality, " + _h,
        "Mamba 2's",
        lambda *a: dual(*a, "loop"),
        lambda *a, h=_h: dual(*a, h),
        ("a state that does not decay", lambda *a: dual(*a, "not decayed"))
        if _h == "chunks"
        else None,
    )


# ---- RWKV, and gated cells ----


def rwkv(g):
    return g.x(T, D, name="k"), g.x(T, D, name="v"), g.param("w", D), g.param("u", D)


def wkv_loop(k, v, w, u, stable):
    g, out = k.g, []
    w = -w.exp()
    a = b = top = None
    for t in range(T):
        kt, vt = k.select(0, t), v.select(0, t)
        if a is None:
            out.append(vt if stable else ((u + kt).exp() * vt) / (u + kt).exp())
            a, b, top = (vt, None, kt) if stable else (kt.exp() * vt, kt.exp(), None)
            continue
        if not stable:
            e = (u + kt).exp()
            out.append((a + e * vt) / (b + e))
            a, b = w.exp() * a + kt.exp() * vt, w.exp() * b + kt.exp()
            continue
        b = b if b is not None else g.ones(D)
        m = top.maximum(u + kt)
        e1, e2 = (top - m).exp(), (u + kt - m).exp()
        out.append((e1 * a + e2 * vt) / (e1 * b + e2))
        m = (top + w).maximum(kt)
        e1, e2 = (top + w - m).exp(), (kt - m).exp()
        a, b, top = e1 * a + e2 * vt, e1 * b + e2, m
    return g.stack(out, 0)


of(rwkv)(
    "RWKV with and without its maximum",
    "numerators and denominators scaled",
    lambda *a: wkv_loop(*a, False),
    lambda *a: wkv_loop(*a, True),
)
of(lambda g: (g.x(T, D), g.param("mix", D)))(
    "token shift",
    "RWKV's mixture with the token before",
    lambda x, m: (lambda p: x * m + p * (1.0 - m))(pad(x, (0, 0, 1, 0)).slice(0, 0, T)),
    lambda x, m: (lambda p: p + (x - p) * m)(x.g.cat([x.g.zeros(1, D), x.slice(0, 0, T - 1)], 0)),
    (
        "the token behind",
        lambda x, m: (lambda p: p + (x - p) * m)(x.g.cat([x.slice(0, 1), x.g.zeros(1, D)], 0)),
    ),
)


def cell(g):
    return (
        g.x(3, D, name="x"),
        g.x(3, D, name="h"),
        g.param("wi", 3 * D, D),
        g.param("wh", 3 * D, D),
        g.param("bi", 3 * D),
        g.param("bh", 3 * D),
    )


def gru(x, h, wi, wh, bi, bh, wrong=False):
    (ir, iz, in_), (hr, hz, hn) = x.linear(wi, bi).chunk(3, 1), h.linear(wh, bh).chunk(3, 1)
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    n = (in_ + (hn if wrong else r * hn)).tanh()
    return (1.0 - z) * n + z * h


of(cell)(
    "gated recurrent unit",
    "one product of input and state",
    gru,
    lambda x, h, wi, wh, bi, bh: (
        lambda a, r, z: (lambda n: n + z * (h - n))(
            (
                x.linear(wi.slice(0, 2 * D), bi.slice(0, 2 * D))
                + r * h.linear(wh.slice(0, 2 * D), bh.slice(0, 2 * D))
            ).tanh()
        )
    )(
        *(lambda a: (a, a.slice(1, 0, D), a.slice(1, D)))(
            x.g.cat([x, h], 1)
            .linear(
                x.g.cat([wi.slice(0, 0, 2 * D), wh.slice(0, 0, 2 * D)], 1),
                bi.slice(0, 0, 2 * D) + bh.slice(0, 0, 2 * D),
            )
            .sigmoid()
        )
    ),
    ("the reset left out", lambda *a: gru(*a, wrong=True)),
)
