"""A small language for pairs of captures: graphs are written as PyTorch code is, shapes and dtypes
are inferred here, and graph.json and the safetensors are written with the standard library alone. A
graph is a function of `g`, a Graph, that returns its output (or a dict of outputs):

    pair("linear as mm", EQUIVALENT, "mm with the transposed weight",
         lambda g: g.x(4, 8).linear(g.param("w", 6, 8)),
         lambda g: g.x(4, 8).mm(g.param("w", 6, 8).t()))

Values come from the leaf's name and DRAW, so that both sides of a pair have the same and the same
call has them each time. DRAW 0 is what is captured. With another DRAW all that is not held (token
ids, floats, parameters) has other values, related as before: what a pair's verdict is said to be
can be checked by running both sides, without Isomer."""

import json
import math
import os
import random

from stored import *

EQUIVALENT, DIFFERENT, UNDECIDED, ERROR = "equivalent", "different", "undecided", "error"
NOT_EQUIVALENT = "different|undecided"
NOT_DIFFERENT = "equivalent|undecided"
INF = 2**63 - 1
DRAW = 0
SALT = ""

PAIRS = {}


class Pair:
    def __init__(self, name, expected, why, left, right):
        self.name, self.expected, self.why, self.sides = name, expected, why, (left, right)

    def write(self, folder):
        """folder/left and folder/right."""
        for side, build in zip(("left", "right"), self.sides):
            g = Graph()
            out = build(g)
            g.write(os.path.join(folder, side), out if isinstance(out, dict) else {"y": out})


def write_together(pairs, folder):
    """Many pairs in one: leaves under a prefix and with values of their own, one output for each
    output of a pair."""
    global SALT
    for s, side in enumerate(("left", "right")):
        g, outputs = Graph(), {}
        for k, p in enumerate(pairs):
            g.prefix = "%d." % k
            SALT = g.prefix if k else ""
            out = p.sides[s](g)
            for name, t in (out if isinstance(out, dict) else {"y": out}).items():
                outputs[g.prefix + name] = t
        SALT = ""
        g.write(os.path.join(folder, side), outputs)


def pair(name, expected, why, left, right=None):
    """With one function, it is called as f(g, 0) for the left side and f(g, 1) for the right
    side."""
    assert name not in PAIRS, name
    PAIRS[name] = Pair(
        name,
        expected,
        why,
        *((left, right) if right else (lambda g: left(g, 0), lambda g: left(g, 1))),
    )


# ---- values ----


def count(shape):
    return math.prod(shape)


class Data:
    """Values in row-major order, to be cut and joined as loaders do with weights."""

    def __init__(self, shape, values):
        assert len(values) == count(shape)
        self.shape, self.values = tuple(shape), list(values)

    def reshape(self, *shape):
        return Data(shape, self.values)

    def take(self, rows):
        """These rows, in this order."""
        n = count(self.shape[1:])
        return Data(
            (len(rows),) + self.shape[1:],
            [v for r in rows for v in self.values[r * n : (r + 1) * n]],
        )

    def rows(self, a, b):
        return self.take(range(a, b))

    def t(self):
        r, c = self.shape
        return Data((c, r), [self.values[i * c + j] for j in range(c) for i in range(r)])

    def scaled(self, by):
        return Data(self.shape, [v * by for v in self.values])

    def pad(self, rows, value=0.0):
        return join(self, Data((rows,) + self.shape[1:], [value] * (rows * count(self.shape[1:]))))


def join(*parts):
    return Data(
        (sum(p.shape[0] for p in parts),) + parts[0].shape[1:], [v for p in parts for v in p.values]
    )


def values(
    name, *shape, at=None, like=None, scale=1.0, shift=0.0, held=False, input=False, positive=False
):
    """Normal values. at: what is captured instead: a number, a list, or a function of the index.
    like: what is captured is that of another name. scale, shift: of what is captured. held: never
    drawn anew. positive: never below 0."""
    n = count(shape)
    if DRAW and not held:
        rng = random.Random("%s%s %d" % (SALT, name, DRAW))
        spread = (
            (1.0, 1.0, 1 / 64, 30.0, 3e4, 1.0)[DRAW % 6]
            if input
            else (1.0, 1.0, 1.0, 4.0, 1.0, 0.1)[DRAW % 6]
        )
        v = [rng.gauss(0, 1) * spread for _ in range(n)]
        if DRAW == 6:
            v = [round(2 * x) / 2 for x in v]
        elif DRAW == 7:
            v = [-abs(x) for x in v]
    elif at is not None:
        v = [
            float(at(i) if callable(at) else at[i] if isinstance(at, (list, tuple)) else at)
            for i in range(n)
        ]
    else:
        rng = random.Random(SALT + (like or name))
        v = [rng.gauss(0, 1) * scale + shift for _ in range(n)]
    return Data(shape, [abs(x) for x in v] if positive else v)


def symmetric(name, n):
    if DRAW:
        return values(name, n, n)
    d = values(name, n, n).values
    return Data((n, n), [d[min(i, j) * n + max(i, j)] for i in range(n) for j in range(n)])


def half_to_interleaved(d, heads, width):
    """Rows (per head, first half, second half) to (per head, pairs)."""
    return d.take(
        [
            h * width + k * (width // 2) + i
            for h in range(heads)
            for i in range(width // 2)
            for k in (0, 1)
        ]
    )


# ---- dtypes of results ----


def promote(*dtypes):
    best = max(dtypes, key=ORDER.index)
    return f32 if {f16, bf16} <= set(dtypes) and best == bf16 else best


def result_type(*args):
    groups = [[], [], []]  # tensors with dimensions, without, Python numbers
    for a in args:
        if isinstance(a, Tensor):
            groups[0 if a.shape else 1].append(a.dtype)
        else:
            groups[2].append(boolean if isinstance(a, bool) else i64 if isinstance(a, int) else f32)
    best = None
    for g in groups:
        if g:
            d = promote(*g)
            best = d if best is None or KIND[d] > KIND[best] else best
    return best


def floating(dtype):
    return dtype if KIND[dtype] >= 2 else f32


def broadcast(*shapes):
    rank = max(len(s) for s in shapes)
    out = []
    for i in range(rank):
        sizes = {s[i - rank + len(s)] for s in shapes if i - rank + len(s) >= 0} - {1}
        assert len(sizes) <= 1, shapes
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


# ---- graphs ----


class Tensor:
    def __init__(self, g, ref, shape, dtype):
        self.g, self.ref, self.shape, self.dtype = g, ref, tuple(shape), dtype

    def op(self, name, args, shape=None, dtype=None, **kwargs):
        return self.g.op(
            name, args, [(self.shape if shape is None else shape, dtype or self.dtype)], kwargs
        )[0]

    def dim(self, d):
        return d + len(self.shape) if d < 0 else d

    def __add__(self, o):
        return self.add(o)

    def __radd__(self, o):
        return self.add(o)

    def __sub__(self, o):
        return self.sub(o)

    def __rsub__(self, o):
        return self.rsub(o)

    def __mul__(self, o):
        return self.mul(o)

    def __rmul__(self, o):
        return self.mul(o)

    def __truediv__(self, o):
        return self.div(o)

    def __matmul__(self, o):
        return self.matmul(o)

    def __neg__(self):
        return self.neg()

    def __and__(self, o):
        return self.logical_and(o)

    def __or__(self, o):
        return self.logical_or(o)

    def __invert__(self):
        return self.logical_not()

    def __gt__(self, o):
        return self.gt(o)

    def __ge__(self, o):
        return self.ge(o)

    def __lt__(self, o):
        return self.lt(o)

    def __le__(self, o):
        return self.le(o)

    # shapes

    def sizes(self, shape):
        shape = list(shape[0]) if shape and isinstance(shape[0], (list, tuple)) else list(shape)
        given = list(shape)
        if -1 in shape:
            shape[shape.index(-1)] = count(self.shape) // max(
                1, count([s for s in shape if s != -1])
            )
        assert count(shape) == count(self.shape), (self.shape, shape)
        return given, shape

    def view(self, *shape):
        given, shape = self.sizes(shape)
        return self.op("view", [self, given], shape)

    def reshape(self, *shape):
        given, shape = self.sizes(shape)
        return self.op("reshape", [self, given], shape)

    def flatten(self, a=0, b=-1):
        a, b = self.dim(a), self.dim(b)
        return self.op(
            "flatten.using_ints",
            [self, a, b],
            self.shape[:a] + (count(self.shape[a : b + 1]),) + self.shape[b + 1 :],
        )

    def unflatten(self, d, sizes):
        return self.op(
            "unflatten.int",
            [self, d, sizes],
            self.shape[: self.dim(d)] + tuple(sizes) + self.shape[self.dim(d) + 1 :],
        )

    def unsqueeze(self, d):
        e = d + len(self.shape) + 1 if d < 0 else d
        return self.op("unsqueeze", [self, d], self.shape[:e] + (1,) + self.shape[e:])

    def squeeze(self, d):
        e = self.dim(d)
        return self.op(
            "squeeze.dim", [self, d], self.shape[:e] + self.shape[e + (self.shape[e] == 1) :]
        )

    def transpose(self, a, b):
        s = list(self.shape)
        s[a], s[b] = s[b], s[a]
        return self.op("transpose.int", [self, a, b], s)

    def t(self):
        return self.op("t", [self], self.shape[::-1])

    def permute(self, *dims):
        return self.op("permute", [self, list(dims)], [self.shape[d] for d in dims])

    def expand(self, *shape):
        off = len(shape) - len(self.shape)
        return self.op(
            "expand",
            [self, list(shape)],
            [self.shape[i - off] if s == -1 else s for i, s in enumerate(shape)],
        )

    def repeat(self, *times):
        s = (1,) * (len(times) - len(self.shape)) + self.shape
        return self.op("repeat", [self, list(times)], tuple(a * b for a, b in zip(s, times)))

    def repeat_interleave(self, n, d):
        s = list(self.shape)
        s[d] *= n
        return self.op("repeat_interleave.self_int", [self, n, d], s)

    def resized(self, d, n):
        d = self.dim(d)
        return self.shape[:d] + (n,) + self.shape[d + 1 :]

    def slice(self, d, a, b=INF, step=1):
        n = len(range(self.shape[self.dim(d)])[a:b:step])
        return self.op(
            "slice.Tensor", [self, d, a, b] + ([step] if step != 1 else []), self.resized(d, n)
        )

    def narrow(self, d, start, n):
        return self.op("narrow", [self, d, start, n], self.resized(d, n))

    def select(self, d, i):
        e = self.dim(d)
        return self.op("select.int", [self, d, i], self.shape[:e] + self.shape[e + 1 :])

    def several(self, name, args, shapes, dtypes=None):
        return self.g.op(
            name, args, [(s, dtypes[i] if dtypes else self.dtype) for i, s in enumerate(shapes)]
        )

    def split(self, n, d):
        size = self.shape[self.dim(d)]
        return self.several(
            "split.Tensor",
            [self, n, d],
            [self.resized(d, min(n, size - i)) for i in range(0, size, n)],
        )

    def split_with_sizes(self, sizes, d):
        return self.several(
            "split_with_sizes", [self, list(sizes), d], [self.resized(d, n) for n in sizes]
        )

    def chunk(self, n, d):
        size = self.shape[self.dim(d)]
        return self.several("chunk", [self, n, d], [self.resized(d, size // n)] * n)

    def unbind(self, d):
        e = self.dim(d)
        return self.several(
            "unbind.int", [self, d], [self.shape[:e] + self.shape[e + 1 :]] * self.shape[e]
        )

    def flip(self, *dims):
        return self.op("flip", [self, list(dims)])

    def roll(self, by, d):
        return self.op("roll", [self, [by], [d]])

    def to(self, dtype, op="to.dtype"):
        return (
            self.op("_to_copy", [self], dtype=dtype, **{"dtype_": dtype})
            if op == "_to_copy"
            else self.op(op, [self, Dtype(dtype)], dtype=dtype)
        )

    # products

    def mm(self, o):
        return self.op("mm", [self, o], (self.shape[0], o.shape[1]))

    def bmm(self, o):
        return self.op("bmm", [self, o], (self.shape[0], self.shape[1], o.shape[2]))

    def matmul(self, o):
        if len(o.shape) == 1:
            return self.op("matmul", [self, o], self.shape[:-1])
        return self.op(
            "matmul",
            [self, o],
            broadcast(self.shape[:-2], o.shape[:-2]) + (self.shape[-2], o.shape[-1]),
        )

    def linear(self, w, b=None):
        return self.op("linear", [self, w] + ([b] if b else []), self.shape[:-1] + w.shape[:1])

    def addmm(self, a, b, **k):
        return self.op("addmm", [self, a, b], (a.shape[0], b.shape[1]), **k)

    # elementwise with more than one tensor, or with attributes

    def binary(self, name, o, dtype=None, **k):
        shape = broadcast(self.shape, o.shape) if isinstance(o, Tensor) else self.shape
        return self.op(name, [self, o], shape, dtype or result_type(self, o), **k)

    def add(self, o, **k):
        return self.binary("add.Tensor", o, **k)

    def sub(self, o, **k):
        return self.binary("sub.Tensor", o, **k)

    def mul(self, o):
        return self.binary("mul.Tensor", o)

    def rsub(self, o):
        return self.binary("rsub.Scalar", o)

    def div(self, o, mode=None):
        if mode is None:
            return self.binary("div.Tensor", o, dtype=floating(result_type(self, o)))
        return self.binary("div.Tensor_mode", o, rounding_mode=mode)

    def floor_divide(self, o):
        return self.binary("floor_divide", o)

    def remainder(self, o):
        return self.binary("remainder." + which(o), o)

    def fmod(self, o):
        return self.binary("fmod." + which(o), o)

    def maximum(self, o):
        return self.binary("maximum", o)

    def minimum(self, o):
        return self.binary("minimum", o)

    def bitwise_and(self, o):
        return self.binary("bitwise_and." + which(o), o)

    def rshift(self, o):
        return self.binary("__rshift__." + which(o), o)

    def lshift(self, o):
        return self.binary("__lshift__." + which(o), o)

    def logical_and(self, o):
        return self.binary("logical_and", o, dtype=boolean)

    def logical_or(self, o):
        return self.binary("logical_or", o, dtype=boolean)

    def logical_not(self):
        return self.op("logical_not", [self], dtype=boolean)

    def pow(self, o):
        return self.binary("pow.Tensor_" + which(o), o)

    def masked_fill(self, mask, value):
        return self.op("masked_fill.Scalar", [self, mask, value], broadcast(self.shape, mask.shape))

    def where(self, a, b):
        name = (
            "where.self"
            if isinstance(a, Tensor) and isinstance(b, Tensor)
            else "where.ScalarOther"
            if isinstance(a, Tensor)
            else "where.ScalarSelf"
            if isinstance(b, Tensor)
            else "where.Scalar"
        )
        shapes = [t.shape for t in (self, a, b) if isinstance(t, Tensor)]
        return self.op(name, [self, a, b], broadcast(*shapes), result_type(a, b))

    def clamp(self, lo=None, hi=None):
        return self.op(
            "clamp",
            [self, lo, hi],
            dtype=result_type(self, *[x for x in (lo, hi) if x is not None]),
        )

    def clamp_min(self, v):
        return self.op("clamp_min", [self, v], dtype=result_type(self, v))

    def clamp_max(self, v):
        return self.op("clamp_max", [self, v], dtype=result_type(self, v))

    def gelu(self, **k):
        return self.op("gelu", [self], **k)

    def softplus(self, *a):
        return self.op("softplus", [self, *a])

    def dropout(self, p, train):
        return self.op("dropout", [self, p, train])

    def leaky_relu(self, slope):
        return self.op("leaky_relu", [self, slope])

    def threshold(self, at, value):
        return self.op("threshold", [self, at, value])

    def tril(self, k=0):
        return self.op("tril", [self, k])

    def triu(self, k=0):
        return self.op("triu", [self, k])

    def addcmul(self, a, b, **k):
        return self.op("addcmul", [self, a, b], broadcast(self.shape, a.shape, b.shape), **k)

    def lerp(self, end, w):
        return self.op("lerp.Scalar", [self, end, w])

    # reductions

    def reduced(self, dims, keep):
        dims = [self.dim(d) for d in (dims if isinstance(dims, (list, tuple)) else [dims])]
        return [1 if i in dims else s for i, s in enumerate(self.shape) if keep or i not in dims]

    def reduce(self, name, d, keep, dtype=None, as_list=True):
        return self.op(
            name,
            [self, [d] if as_list and isinstance(d, int) else d, keep],
            self.reduced(d, keep),
            dtype,
        )

    def sum(self, d, keep=False):
        return self.reduce("sum.dim_IntList", d, keep, i64 if KIND[self.dtype] < 2 else None)

    def mean(self, d, keep=False):
        return self.reduce("mean.dim", d, keep)

    def amax(self, d, keep=False):
        return self.reduce("amax", d, keep)

    def amin(self, d, keep=False):
        return self.reduce("amin", d, keep)

    def logsumexp(self, d, keep=False):
        return self.reduce("logsumexp", d, keep)

    def var(self, d, keep=False, correction=0):
        return self.op(
            "var.correction",
            [self, [d]],
            self.reduced(d, keep),
            correction=correction,
            keepdim=keep,
        )

    def std(self, d, keep=False, correction=0):
        return self.op(
            "std.correction",
            [self, [d]],
            self.reduced(d, keep),
            correction=correction,
            keepdim=keep,
        )

    def norm(self, d, keep=False):
        return self.op("linalg_vector_norm", [self, 2, [d], keep], self.reduced(d, keep))

    def prod(self, d, keep=False):
        return self.reduce("prod.dim_int", d, keep, as_list=False)

    def any(self, d, keep=False):
        return self.reduce("any.dim", d, keep, boolean, as_list=False)

    def all(self, d, keep=False):
        return self.reduce("all.dim", d, keep, boolean, as_list=False)

    def argmax(self, d, keep=False):
        return self.reduce("argmax", d, keep, i64, as_list=False)

    def argmin(self, d, keep=False):
        return self.reduce("argmin", d, keep, i64, as_list=False)

    def max(self, d, keep=False):
        return self.several(
            "max.dim", [self, d, keep], [self.reduced(d, keep)] * 2, [self.dtype, i64]
        )

    def cumsum(self, d):
        return self.op("cumsum", [self, d], dtype=i64 if KIND[self.dtype] < 2 else None)

    def softmax(self, d, dtype=None):
        return self.op("softmax.int", [self, d] + ([Dtype(dtype)] if dtype else []), dtype=dtype)

    def log_softmax(self, d):
        return self.op("log_softmax.int", [self, d])

    def topk(self, k, d=-1, *flags):
        return self.several(
            "topk", [self, k, d, *flags], [self.resized(d, k)] * 2, [self.dtype, i64]
        )

    def sort(self, d=-1, descending=False):
        return self.several("sort", [self, d, descending], [self.shape] * 2, [self.dtype, i64])

    # norms

    def layer_norm(self, w=None, b=None, eps=1e-5):
        return self.op("layer_norm", [self, [self.shape[-1]], w, b, eps])

    def rms_norm(self, w=None, eps=1e-6):
        return self.op("rms_norm", [self, [self.shape[-1]], w, eps])

    def group_norm(self, groups, w=None, b=None, eps=1e-5):
        return self.op("group_norm", [self, groups, w, b, eps])

    # indices: self is the table, except in one_hot

    def embedding(self, i):
        return self.op("embedding", [self, i], i.shape + self.shape[1:])

    def index_select(self, d, i):
        return self.op("index_select", [self, d, i], self.resized(d, i.shape[0]))

    def gather(self, d, i):
        return self.op("gather", [self, d, i], i.shape)

    def index_add(self, d, i, source, **k):
        return self.op("index_add", [self, d, i, source], **k)

    def scatter(self, d, i, source):
        return self.op(
            "scatter." + ("src" if isinstance(source, Tensor) else "value"), [self, d, i, source]
        )

    def scatter_add(self, d, i, source):
        return self.op("scatter_add", [self, d, i, source])

    def one_hot(self, n):
        return self.op("one_hot", [self, n], self.shape + (n,), i64)

    def index(self, *indices):
        s = broadcast(*[i.shape for i in indices if i])
        at = [k for k, i in enumerate(indices) if i][0]
        return self.op(
            "index.Tensor",
            [self, list(indices)],
            self.shape[:at] + s + self.shape[at + sum(1 for i in indices if i) :],
        )

    def sdpa(self, k, v, mask=None, causal=False, **kw):
        return self.op(
            "scaled_dot_product_attention",
            [self, k, v, mask, 0.0, causal],
            self.shape[:-1] + v.shape[-1:],
            **kw,
        )

    # complex numbers, of two float32

    def view_as_complex(self):
        return self.op("view_as_complex", [self], self.shape[:-1], "complex64")

    def view_as_real(self):
        return self.op("view_as_real", [self], self.shape + (2,), f32)

    def complex(self, im):
        return self.op("complex", [self, im], dtype="complex64")

    def polar(self, angle):
        return self.op("polar", [self, angle], dtype="complex64")

    def real(self):
        return self.op("real", [self], dtype=f32)

    def conv1d(self, w, b=None, stride=1, padding=0, groups=1):
        n = (self.shape[2] + 2 * padding - w.shape[2]) // stride + 1
        return self.op(
            "conv1d", [self, w, b, [stride], [padding], [1], groups], (self.shape[0], w.shape[0], n)
        )


def which(o):
    return "Tensor" if isinstance(o, Tensor) else "Scalar"


def unary(name, op=None, dtype=None):
    def method(self):
        return self.op(op or name, [self], dtype=dtype)

    setattr(Tensor, name, method)


def comparison(name):
    def method(self, o):
        return self.binary(name + "." + which(o), o, boolean)

    setattr(Tensor, name, method)


for _n in (
    "exp log log2 tanh sigmoid silu relu relu6 rsqrt sqrt sin cos erf log1p expm1 reciprocal neg "
    "abs floor ceil round trunc sign square hardswish mish log_sigmoid nan_to_num clone contiguous "
    "detach alias zeros_like ones_like bitwise_not elu selu hardsigmoid lift_fresh_copy"
).split():
    unary(_n)
for _tells in ("isnan", "isinf", "isfinite"):
    unary(_tells, dtype=boolean)
for _n in "gt ge lt le eq ne".split():
    comparison(_n)


class Dtype:
    def __init__(self, name):
        self.name = name


class Graph:
    def __init__(self):
        self.nodes, self.weights, self.inputs, self.leaves = [], {}, {}, {}
        self.n, self.prefix = 0, ""
        self.scope = None  # of the nodes that are made from now on

    def json(self, v):
        if isinstance(v, Tensor):
            return {"ref": v.ref}
        if isinstance(v, Dtype):
            return {"dtype": v.name}
        if isinstance(v, float) and not math.isfinite(v):
            return {"float": str(v)}
        return [self.json(x) for x in v] if isinstance(v, (list, tuple)) else v

    def node(self, op, outputs, **more):
        ref = "n%d" % self.n
        self.n += 1
        if self.scope:
            more["scope"] = self.scope
        self.nodes.append(
            dict(
                {"id": ref, "op": op},
                **more,
                outputs=[{"shape": list(s), "dtype": d} for s, d in outputs],
            )
        )
        return ref

    def op(self, name, args, outputs, kwargs={}, **more):
        """The outputs of an operator, in a list: (shape, dtype) of each is given. dtype_=D stands
        for dtype=D."""
        kwargs = {
            k.rstrip("_"): self.json(Dtype(v) if k == "dtype_" else v) for k, v in kwargs.items()
        }
        ref = self.node(
            name if "::" in name else "aten::" + name,
            outputs,
            args=self.json(args),
            kwargs=kwargs,
            **more,
        )
        if len(outputs) == 1:
            return [Tensor(self, ref, *outputs[0])]
        return [
            Tensor(self, self.node("getitem", [o], args=[{"ref": ref}, i], kwargs={}), *o)
            for i, o in enumerate(outputs)
        ]

    def leaf(self, kind, name, data, dtype):
        """Asked for twice, it is the same one."""
        name = self.prefix + name
        if name in self.leaves:
            t, was, how = self.leaves[name]
            assert (was.shape, was.values, how) == (data.shape, data.values, (kind, dtype)), name
            return t
        (self.inputs if kind == "input" else self.weights)[name] = (data, dtype)
        t = Tensor(self, self.node(kind, [(data.shape, dtype)], name=name), data.shape, dtype)
        self.leaves[name] = t, data, (kind, dtype)
        return t

    def param(self, name, *shape, dtype=f32, kind="parameter", **how):
        """shape is sizes, or one Data."""
        data = shape[0] if shape and isinstance(shape[0], Data) else values(name, *shape, **how)
        return self.leaf(kind, name, data, dtype)

    def buffer(self, name, *shape, **how):
        return self.param(name, *shape, kind="buffer", held=True, **how)

    def const(self, name, data, dtype=f32):
        """data: a Data, or a list."""
        return self.leaf(
            "constant", name, data if isinstance(data, Data) else Data((len(data),), data), dtype
        )

    def x(self, *shape, name="x", dtype=f32, **how):
        return self.leaf("input", name, values(name, *shape, input=True, **how), dtype)

    def ints(self, name, captured, below=None, dtype=i64):
        """An input of integers: `captured`, a list or a Data; drawn anew below `below`, or held."""
        data = captured if isinstance(captured, Data) else Data((len(captured),), captured)
        if DRAW and below:
            rng = random.Random("%s %d" % (name, DRAW))
            data = Data(data.shape, [rng.randrange(below) for _ in data.values])
        return self.leaf("input", name, data, dtype)

    def arange(self, *args, dtype=None):
        name = (
            "arange"
            if len(args) == 1
            else "arange.start"
            if len(args) == 2
            else "arange.start_step"
        )
        dtype_ = dtype or (f32 if any(isinstance(a, float) for a in args) else i64)
        return self.op(
            name,
            list(args),
            [((len(range(*map(int, args))),), dtype_)],
            {"dtype_": dtype} if dtype else {},
        )[0]

    def full(self, shape, value, dtype=f32):
        return self.op("full", [list(shape), value], [(shape, dtype)], {"dtype_": dtype})[0]

    def zeros(self, *shape, dtype=f32):
        return self.op("zeros", [list(shape)], [(shape, dtype)], {"dtype_": dtype})[0]

    def ones(self, *shape, dtype=f32):
        return self.op("ones", [list(shape)], [(shape, dtype)], {"dtype_": dtype})[0]

    def empty(self, *shape, dtype=f32):
        return self.op("empty.memory_format", [list(shape)], [(shape, dtype)], {"dtype_": dtype})[0]

    def cat(self, parts, d):
        d = parts[0].dim(d)
        return self.op(
            "cat",
            [parts, d],
            [
                (
                    parts[0].resized(d, sum(p.shape[d] for p in parts)),
                    promote(*[p.dtype for p in parts]),
                )
            ],
        )[0]

    def stack(self, parts, d):
        s = parts[0].shape
        e = d + len(s) + 1 if d < 0 else d
        return self.op("stack", [parts, d], [(s[:e] + (len(parts),) + s[e:], parts[0].dtype)])[0]

    def einsum(self, equation, *parts):
        ins, out = equation.split("->")
        size = {c: n for letters, p in zip(ins.split(","), parts) for c, n in zip(letters, p.shape)}
        return self.op(
            "einsum", [equation, list(parts)], [([size[c] for c in out], parts[0].dtype)]
        )[0]

    def attention(self, q, k, v, heads, kv_heads, width, **attributes):
        """vLLM's attention of [T, heads * width]; attributes beyond the defaults."""
        a = {
            "num_heads": heads,
            "num_kv_heads": kv_heads,
            "head_size": width,
            "scale": width**-0.5,
            "sliding_window": None,
            "logits_soft_cap": None,
            "alibi_slopes": None,
            "causal": True,
        }
        a.update(attributes)
        return self.op(
            "vllm::unified_attention", [q, k, v, "layer"], [(q.shape, q.dtype)], attributes=a
        )[0]

    # ---- on disk ----

    def write(self, folder, outputs):
        os.makedirs(folder, exist_ok=True)
        graph = {
            "format": "isomer-capture",
            "version": 1,
            "model": "pair",
            "framework": "none",
            "framework_version": "0",
            "torch_version": "2.6.0",
            "nodes": self.nodes,
            "outputs": [{"name": k, "ref": v.ref} for k, v in outputs.items()],
            "metadata": {},
        }
        with open(os.path.join(folder, "graph.json"), "w", encoding="utf-8") as f:
            json.dump(graph, f)
        write_safetensors(os.path.join(folder, "weights.safetensors"), self.weights)
        write_safetensors(os.path.join(folder, "inputs.safetensors"), self.inputs)


def rounded(d, dtype):
    """Numbers that the dtype can hold."""
    table = FLOAT8[dtype]
    return Data(d.shape, [math.copysign(table[to_float8(x, dtype) & 0x7F], x) for x in d.values])
