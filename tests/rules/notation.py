"""How rules are written in the files of laws/, published/ and passes/: short names of operators,
and `law`, which adds a rule with its near misses."""

import re

SHORT = {
    "add": "add.Tensor",
    "adds": "add.Scalar",
    "sub": "sub.Tensor",
    "subs": "sub.Scalar",
    "mul": "mul.Tensor",
    "muls": "mul.Scalar",
    "div": "div.Tensor",
    "divs": "div.Scalar",
    "pow": "pow.Tensor_Scalar",
    "powt": "pow.Tensor_Tensor",
    "T": "transpose.int",
    "sum": "sum.dim_IntList",
    "mean": "mean.dim",
    "softmax": "softmax.int",
    "logsoftmax": "log_softmax.int",
    "slice": "slice.Tensor",
    "select": "select.int",
    "split": "split.Tensor",
    "unbind": "unbind.int",
    "squeeze": "squeeze.dim",
    "where": "where.self",
    "eq": "eq.Tensor",
    "ne": "ne.Tensor",
    "lt": "lt.Tensor",
    "le": "le.Tensor",
    "gt": "gt.Tensor",
    "ge": "ge.Tensor",
    "eqs": "eq.Scalar",
    "nes": "ne.Scalar",
    "lts": "lt.Scalar",
    "les": "le.Scalar",
    "gts": "gt.Scalar",
    "ges": "ge.Scalar",
    "sdpa": "scaled_dot_product_attention",
    "mfill": "masked_fill.Scalar",
    "var": "var.correction",
    "maxd": "max.dim",
    "mind": "min.dim",
    "max2": "maximum",
    "min2": "minimum",
    "any": "any.dim",
    "all": "all.dim",
    "to": "to.dtype",
    "flatten": "flatten.using_ints",
    "repint": "repeat_interleave.self_int",
    "fmods": "fmod.Scalar",
    "rems": "remainder.Scalar",
    "lin": "linear",
    "flr": "floor",
    "zl": "zeros_like",
    "ol": "ones_like",
    "prod": "prod.dim_int",
    "powst": "pow.Scalar",
    "cumsum": "cumsum",
    "normd": "linalg_vector_norm",
    "lse": "logsumexp",
    "divm": "div.Tensor_mode",
    "lerps": "lerp.Scalar",
    "band": "bitwise_and.Tensor",
    "bor": "bitwise_or.Tensor",
    "bxor": "bitwise_xor.Tensor",
    "shl": "bitwise_left_shift.Tensor_Scalar",
    "clampT": "clamp.Tensor",
}
KEEP = {
    "list",
    "getitem",
    "in",
    "=",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "mod",
    "divides",
    "and",
    "or",
    "not",
    "...",
}


def full(term):
    def op(m):
        name = m.group(1)
        if name in KEEP or "::" in name:
            return m.group(0)
        return "(aten::" + SHORT.get(name, name)

    return re.sub(r"\(([^\s()]+)", op, term)


VARS = {
    "x": "(var x f (N M))",
    "y": "(var y f (N M))",
    "z": "(var z f (N M))",
    "v": "(var v f (M))",
    "u": "(var u f (N))",
    "X": "(var X f _)",
    "Y": "(var Y f _)",
    "Z": "(var Z f _)",
    "s": "(var s f ())",
    "a": "(var a f (N K))",
    "b": "(var b f (K M))",
    "c": "(var c f (K M))",
    "d": "(var d f (M L))",
    "t": "(var t f (B N M))",
    "w": "(var w f (M N))",
    "p": "(var p b (N M))",
    "q": "(var q b (N M))",
    "i": "(var i i (N M))",
    "j": "(var j i (N M))",
    "h": "(var h f (B H S D))",
    "k": "(var k f (B H S D))",
    "g": "(var g f (B H S D))",
    "P": "(var P b _)",
    "Q": "(var Q b _)",
    "I": "(var I i _)",
    "J": "(var J i _)",
}
out, names = [], set()


def emit(name, decl, lhs, rhs, where):
    base, n = name, 2
    while name in names:
        name, n = "%s-%d" % (base, n), n + 1
    names.add(name)
    used = decl
    if ";" not in decl and "(" not in decl:
        used = " ".join(VARS[v] for v in decl.split())
    out.append(
        "(rule %s %s\n  (lhs %s)\n  (rhs %s)%s)"
        % (name, used, full(lhs), full(rhs), "\n  (where %s)" % where if where else "")
    )


def law(name, decl, lhs, rhs, *wrong, where="", attrs=""):
    """`wrong`: right sides that are not equal, or (lhs, rhs), or (lhs, rhs, where)."""
    if "(" in decl:
        pass
    else:
        decl = " ".join(VARS[v] for v in decl.split())
    decl = (decl + " " + attrs).strip()
    emit(name, decl, lhs, rhs, where)
    for w in wrong:
        w = (lhs, w) if isinstance(w, str) else w
        emit("no-" + name, decl, w[0], w[1], w[2] if len(w) > 2 else where)
