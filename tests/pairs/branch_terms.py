"""Terms of rules and graphs that turn on a branch: one tree for both (branches.py)."""

import dsl


SYMBOLIC = 0.3  # of the rules


class T:
    def __init__(self, op, args, shape, kind, **kw):
        self.op, self.args, self.shape, self.kind, self.kw = op, args, tuple(shape), kind, kw
        self.dtype = None  # of integers of few bits

    def __add__(self, o):
        return el("add." + which(self, o), self, o)

    def __sub__(self, o):
        return el("sub." + which(self, o), self, o)

    def __mul__(self, o):
        return el("mul." + which(self, o), self, o)

    def __neg__(self):
        return el("neg", self)

    def __invert__(self):
        return el("logical_not", self, kind="b")


def var(name, kind, *shape, limit=None):
    t = T(name, None, shape, kind)
    t.limit, t.said = limit, False  # said: the captures say so
    return t


def which(*args):
    return "Tensor" if isinstance(args[1], T) else "Scalar"


def el(op, *args, kind=None, **kw):
    """An elementwise operator."""
    tensors = [a for a in args if isinstance(a, T)]
    kinds = [a.kind for a in tensors] + ["f" for a in args if isinstance(a, float)]
    if kind is None:
        kind = "f" if "f" in kinds else "i" if "i" in kinds else "b"
    return T(op, list(args), dsl.broadcast(*[a.shape for a in tensors]), kind, **kw)


def shaped(op, args, shape, kind=None, **kw):
    return T(op, list(args), shape, kind or args[0].kind, **kw)


def compare(name, a, b):
    if not isinstance(a, T):
        name, a, b = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}.get(name, name), b, a
    return el("%s.%s" % (name, which(a, b)), a, b, kind="b")


def where(c, a, b):
    kind = (
        "f"
        if "f"
        in [x.kind if isinstance(x, T) else "f" if isinstance(x, float) else "i" for x in (a, b)]
        else "i"
    )
    name = (
        "where.self"
        if isinstance(a, T) and isinstance(b, T)
        else "where.ScalarOther"
        if isinstance(a, T)
        else "where.ScalarSelf"
        if isinstance(b, T)
        else "where.Scalar"
    )
    return el(name, c, a, b, kind=kind)


def to_float(c):
    return el("to.dtype", c, dsl.Dtype("float32"), kind="f")


def to_int(c):
    return el("to.dtype", c, dsl.Dtype("int64"), kind="i")


def masked(x, c, v):
    return el("masked_fill.Scalar", x, c, v, kind=x.kind)


def clamp(x, lo, hi):
    return el("clamp", x, lo, hi, kind=x.kind)


def total(x):
    return shaped("sum.dim_IntList", [x, [-1], False], x.shape[:-1], "i" if x.kind != "f" else "f")


def mean(x):
    return shaped("mean.dim", [x, [-1], True], x.shape[:-1] + (1,))


def largest(x):
    return shaped("amax", [x, [-1], True], x.shape[:-1] + (1,))


def unsqueeze(x, d):
    at = d + len(x.shape) + 1 if d < 0 else d
    return shaped("unsqueeze", [x, d], x.shape[:at] + (1,) + x.shape[at:])


def transposed(x):
    return shaped("transpose.int", [x, -2, -1], x.shape[:-2] + (x.shape[-1], x.shape[-2]))


def embedding(w, i):
    return shaped("embedding", [w, i], i.shape + w.shape[1:])


def arange(n):
    return shaped("arange", [n], (n,), "i")


def text_of(t, dims):
    """As a rule writes it."""
    if isinstance(t, T):
        if t.args is None:
            return t.op
        if t.op == "getitem":
            return "(getitem %s %d)" % (text_of(t.args[0], dims), t.args[1])
        kw = "".join(" :%s %s" % (k, text_of(v, dims)) for k, v in t.kw.items())
        return "(aten::%s %s%s)" % (t.op, " ".join(text_of(a, dims) for a in t.args), kw)
    if isinstance(t, dsl.Dtype):
        return t.name
    if isinstance(t, (list, tuple)):
        return "(list %s)" % " ".join(text_of(a, dims) for a in t) if t else "(list)"
    if t is None:
        return "none"
    if isinstance(t, bool):
        return "true" if t else "false"
    if isinstance(t, str):
        return '"%s"' % t
    return repr(t)


def variables(t, out):
    if isinstance(t, T):
        if t.args is None:
            out[t.op] = t
        for a in t.args or ():
            variables(a, out)
    elif isinstance(t, (list, tuple)):
        for a in t:
            variables(a, out)


def rule_text(name, left, right, rng):
    found = {}
    variables(left, found)
    variables(right, found)
    sizes = {}
    texts = [text_of(s, {}) for s in (left, right)]
    fixed = any(v.kind == "i" and v.limit for v in found.values()) or any(
        w in t for t in texts for w in ("arange", "one_hot", "rsub")
    )
    symbolic = rng.random() < SYMBOLIC and not fixed
    # Sizes that are equal stay so: one name for each number.
    dim = lambda n: (
        sizes.setdefault(n, "NMKLABCDE"[len(sizes) % 9]) if symbolic and n > 1 else str(n)
    )
    head = " ".join(
        "(var %s %s (%s))" % (v.op, WIDTH.get(v.dtype, v.kind), " ".join(dim(n) for n in v.shape))
        for v in found.values()
    )
    bound = ["(in %s 0 %d)" % (v.op, v.limit) for v in found.values() if v.kind == "i" and v.limit]
    return "(rule %s %s\n  (lhs %s)\n  (rhs %s)%s)\n" % (
        name,
        head,
        text_of(left, {}),
        text_of(right, {}),
        "\n  (where %s)" % " ".join(bound) if bound else "",
    )


# As a rule writes the kind of integers in few bits.
WIDTH = {"int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8"}
DTYPE = {"f": dsl.f32, "i": dsl.i64, "b": dsl.boolean}


def build(g, t, memo, data):
    """The same as a graph."""
    if not isinstance(t, T):
        return [build(g, a, memo, data) for a in t] if isinstance(t, (list, tuple)) else t
    if id(t) in memo:
        return memo[id(t)]
    if t.args is None:
        if t.op in memo:
            return memo[t.op]
        if t.kind == "i":
            out = g.ints(t.op, dsl.Data(t.shape, data[t.op]), t.limit, t.dtype or dsl.i64)
            if t.said:
                g.nodes[-1]["domain"] = {"range": [0, t.limit - 1]}
        elif t.kind == "b":
            out = g.leaf("input", t.op, dsl.Data(t.shape, data[t.op]), dsl.boolean)
        elif t.op.startswith("w"):
            out = g.param(t.op, *t.shape)
        else:
            out = g.x(*t.shape, name=t.op)
        memo[t.op] = out
        return out
    args = [build(g, a, memo, data) for a in t.args]
    if t.op == "getitem":
        out = args[0][t.args[1]]
    elif isinstance(t.kind, list):
        out = g.op(t.op, args, [(s, DTYPE[k]) for s, k in t.kind], t.kw)
    else:
        out = g.op(t.op, args, [(t.shape, t.dtype or DTYPE[t.kind])], t.kw)[0]
    memo[id(t)] = out
    return out


def several(op, args, results):
    return T(op, list(args), (), results)


def item(t, k):
    return T("getitem", [t, k], t.kind[k][0], t.kind[k][1])
