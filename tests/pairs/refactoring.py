"""Honest refactorings: one function as developers of one framework write it, and as those of
another do.

    refactoring("silu by its sigmoid", "x sigmoid(x)", lambda g: ..., lambda g: ..., wrong=("x
    sigmoid(-x)", lambda g: ...))

Both sides must be `equivalent`, and by a proof. `wrong` is a slightly wrong twin of the right side,
which must never be `equivalent`. TESTED names those that are not proved yet, with the reason. Here
too: operators that dsl.py lacks."""

from dsl import *

REFACTORINGS = {}


def refactoring(name, why, left, right, wrong=None):
    name = "refactored: " + name
    pair(name, EQUIVALENT, why, left, right)
    REFACTORINGS[name] = PAIRS[name]
    if wrong:
        pair("%s, but %s" % (name, wrong[0]), NOT_EQUIVALENT, wrong[0], left, wrong[1])


def of(make):
    """A refactoring whose sides are functions of what make(g) gives."""

    def define(name, why, left, right, wrong=None):
        def side(f):
            return lambda g: f(*make(g))

        refactoring(name, why, side(left), side(right), wrong and (wrong[0], side(wrong[1])))

    return define


# ---- operators ----


def shape_after(t, dims, size):
    s = list(t.shape)
    for d, n in zip(dims, size):
        s[d] = n
    return s


def pad(x, by, value=0.0):
    """by: (before, after) of the last dimension, then of the one before it, ..."""
    s = list(x.shape)
    for k in range(len(by) // 2):
        s[-1 - k] += by[2 * k] + by[2 * k + 1]
    return x.op("constant_pad_nd", [x, list(by), value], s)


def pair_of(n):
    return [n, n] if isinstance(n, int) else list(n)


def conv2d(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    st, pa, di = pair_of(stride), pair_of(padding), pair_of(dilation)
    out = [
        (x.shape[2 + i] + 2 * pa[i] - di[i] * (w.shape[2 + i] - 1) - 1) // st[i] + 1 for i in (0, 1)
    ]
    return x.op("conv2d", [x, w, b, st, pa, di, groups], [x.shape[0], w.shape[0]] + out)


def conv1d(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    n = (x.shape[2] + 2 * padding - dilation * (w.shape[2] - 1) - 1) // stride + 1
    return x.op(
        "conv1d", [x, w, b, [stride], [padding], [dilation], groups], [x.shape[0], w.shape[0], n]
    )


def conv3d(x, w, b, stride):
    out = [(x.shape[2 + i] - w.shape[2 + i]) // stride[i] + 1 for i in range(3)]
    return x.op(
        "conv3d", [x, w, b, list(stride), [0, 0, 0], [1, 1, 1], 1], [x.shape[0], w.shape[0]] + out
    )


def im2col(x, k, padding=0, stride=1):
    out = [(x.shape[2 + i] + 2 * padding - k) // stride + 1 for i in (0, 1)]
    return x.op(
        "im2col",
        [x, [k, k], [1, 1], [padding, padding], [stride, stride]],
        [x.shape[0], x.shape[1] * k * k, out[0] * out[1]],
    )


def unfold(x, d, size, step):
    s = list(x.shape)
    s[d] = (s[d] - size) // step + 1
    return x.op("unfold", [x, d, size, step], s + [size])


def pool2d(x, name, k, stride=None):
    st = stride or k
    return x.op(
        name,
        [x, [k, k], [st, st]],
        shape_after(x, (2, 3), [(x.shape[i] - k) // st + 1 for i in (2, 3)]),
    )


def batch_norm(x, w, b, mean, var, eps=1e-5):
    return x.op("batch_norm", [x, w, b, mean, var, False, 0.1, eps, False])


def baddbmm(c, a, b, **k):
    return c.op("baddbmm", [c, a, b], [a.shape[0], a.shape[1], b.shape[2]], **k)


def logaddexp(a, b):
    return a.binary("logaddexp", b)


def index_put(t, indices, v, accumulate=False):
    return t.op("index_put", [t, list(indices), v] + ([True] if accumulate else []))


def index_copy(t, d, i, v):
    return t.op("index_copy", [t, d, i, v])


def slice_scatter(t, v, d, a, b):
    return t.op("slice_scatter", [t, v, d, a, b])


def argsort(t, d=-1, descending=False, stable=False):
    if stable:
        return t.g.op(
            "argsort.stable",
            [t],
            [(t.shape, i64)],
            {"stable": True, "dim": d, "descending": descending},
        )[0]
    return t.op("argsort", [t, d, descending], dtype=i64)


def exp2(t):
    return t.op("exp2", [t])


def cross_entropy(x, target, smoothing=0.0, reduction=1, ignore=-100):
    return x.op(
        "cross_entropy_loss",
        [x, target, None, reduction, ignore, smoothing],
        () if reduction else target.shape,
    )


def total(t):
    return t.op("sum", [t], (), i64 if KIND[t.dtype] < 2 else None)


def mean_of_all(t):
    return t.op("mean", [t], ())


def take_along(t, i, d):
    return t.op("take_along_dim", [t, i, d], i.shape)


def bincount(t, n):
    return t.op("bincount", [t, None, n], (n,), i64)


def cumprod(t, d):
    return t.op("cumprod", [t, d])


def xor(a, b):
    return a.binary("logical_xor", b, boolean)


def bor(a, b):
    return a.binary("bitwise_or." + which(b), b)


def upsample_nearest(x, k):
    n, c, h, w = x.shape
    return x.op("upsample_nearest2d", [x, [h * k, w * k]], (n, c, h * k, w * k))


def pixel_shuffle(x, r):
    n, c, h, w = x.shape
    return x.op("pixel_shuffle", [x, r], (n, c // (r * r), h * r, w * r))


def pixel_unshuffle(x, r):
    n, c, h, w = x.shape
    return x.op("pixel_unshuffle", [x, r], (n, c * r * r, h // r, w // r))


def glu(x, d=-1):
    return x.op("glu", [x, d], x.resized(d, x.shape[d] // 2))


def diagonal(x):
    """Of the last two dimensions."""
    return x.op("diagonal", [x, 0, -2, -1], x.shape[:-2] + (min(x.shape[-2:]),))


def outer(a, b):
    return a.op("outer", [a, b], (a.shape[0], b.shape[0]))


def roll(x, by, dims):
    return x.op("roll", [x, list(by), list(dims)])


def rms(x, eps=1e-6, d=-1):
    return x * x.pow(2).mean(d, True).add(eps).rsqrt()


def causal(g, t, s=None):
    """[t, s] booleans: true where a key is seen, the last query at the last key."""
    s = s or t
    return g.arange(s).unsqueeze(0) <= g.arange(t).unsqueeze(1).add(s - t)
