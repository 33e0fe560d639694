"""Operators on elements, one at a time. Broadcasts that HLO spells out are left to PyTorch's own
rules, and numbers stand as numbers, as PyTorch's programs have them."""

import torch

from . import shapes
from .build import DTYPES, WRAPPED, Unsupported, dtype_of

UNARY = {
    "abs": "aten::abs",
    "cbrt": None,
    "ceil": "aten::ceil",
    "cosine": "aten::cos",
    "erf": "aten::erf",
    "exponential": "aten::exp",
    "exponential-minus-one": "aten::expm1",
    "floor": "aten::floor",
    "is-finite": "aten::isfinite",
    "log": "aten::log",
    "log-plus-one": "aten::log1p",
    "logistic": "aten::sigmoid",
    "negate": "aten::neg",
    "not": "aten::bitwise_not",
    "round-nearest-even": "aten::round",
    "rsqrt": "aten::rsqrt",
    "sign": "aten::sgn",
    "sine": "aten::sin",
    "sqrt": "aten::sqrt",
    "tan": "aten::tan",
    "tanh": "aten::tanh",
}
BINARY = {
    "add": "aten::add.Tensor",
    "and": "aten::bitwise_and.Tensor",
    "atan2": "aten::atan2",
    "divide": "aten::div.Tensor",
    "maximum": "aten::maximum",
    "minimum": "aten::minimum",
    "multiply": "aten::mul.Tensor",
    "or": "aten::bitwise_or.Tensor",
    "power": "aten::pow.Tensor_Tensor",
    "remainder": "aten::fmod.Tensor",
    "subtract": "aten::sub.Tensor",
    "xor": "aten::bitwise_xor.Tensor",
}
# On truth values these are other operators.
LOGICAL = {"add": "or", "multiply": "and", "maximum": "or", "minimum": "and"}
COMMUTES = ("add", "and", "maximum", "minimum", "multiply", "or", "xor")
COMPARE = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}
FLIPPED = {"EQ": "EQ", "NE": "NE", "LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}
WRAPS = ("add", "subtract", "multiply", "negate", "not")
UNSIGNED = ("u8", "u16", "u32", "u64")


def is_number(x):
    return x.number is not None and not x.placed


def bare(b, x):
    """The operand of a broadcast, without dimensions of size 1 in front where nothing
    else changed."""
    source = x.args[0]
    sizes = list(source.shape)
    while sizes and sizes[0] == 1:
        sizes = sizes[1:]
    if source.op == "aten::reshape" and list(source.args[0].shape) == sizes:
        return source.args[0]
    return source


def implicit(b, operands, shape):
    """The operands of an elementwise operator without their broadcasts, as far as the result keeps
    its shape."""
    shape = tuple(shape)
    small = [bare(b, x) if x.op == "aten::expand" else x for x in operands]
    if tuple(torch.broadcast_shapes(*(x.shape for x in small))) == shape:
        return small
    for k, x in enumerate(operands):  # all of them are broadcast: one stays so
        tried = small[:k] + [x] + small[k + 1 :]
        if tuple(torch.broadcast_shapes(*(y.shape for y in tried))) == shape:
            return tried
    return operands


def wrap(b, x, kind):
    """An unsigned result held in int64, modulo its own range."""
    return b.call("aten::bitwise_and.Scalar", x, WRAPPED[kind]) if kind in WRAPPED else x


def unary(b, opcode, x, kind):
    if opcode == "negate" and x.dtype == torch.bool:
        raise Unsupported("negate of truth values")
    if opcode == "cbrt":
        size = b.call("aten::pow.Tensor_Scalar", b.call("aten::abs", x), 1 / 3)
        return b.call("aten::mul.Tensor", b.call("aten::sgn", x), size)
    out = b.call(UNARY[opcode], x)
    return wrap(b, out, kind) if opcode in WRAPS else out


def both(b, op, x, y, shape):
    x, y = implicit(b, [x, y], shape)
    return b.call(op, x, y)


def extreme(b, opcode, x, number):
    if x.dtype.is_floating_point and number == (-1 if opcode == "maximum" else 1) * float("inf"):
        return x
    return b.call("aten::clamp_min" if opcode == "maximum" else "aten::clamp_max", x, number)


def with_number(b, opcode, x, number):
    """One operand is a number. NULL where the operator has no such form."""
    if opcode in ("add", "subtract", "multiply"):
        return b.call(BINARY[opcode], x, number)
    if opcode == "divide" and x.dtype.is_floating_point:
        return b.call(BINARY[opcode], x, number)
    if opcode in ("maximum", "minimum"):
        return extreme(b, opcode, x, number)
    if opcode == "power":
        return b.call("aten::pow.Tensor_Scalar", x, number)
    if opcode in ("and", "or", "xor") and x.dtype != torch.bool:
        return b.call(BINARY[opcode].replace(".Tensor", ".Scalar"), x, number)
    return None


def divide(b, x, y, shape):
    if x.dtype.is_floating_point:
        if is_number(x) and x.number == 1:
            return b.call("aten::reciprocal", shapes.expand(b, y, shape))
        return both(b, BINARY["divide"], x, y, shape)
    x, y = implicit(b, [x, y], shape)
    return b.call("aten::div.Tensor_mode", x, y, rounding_mode="trunc")


def shift(b, opcode, x, y, kind):
    """Shifts by as much as the width or more leave nothing (or the sign)."""
    if y.number is None or kind == "pred" or kind not in ("s8", "s16", "s32", "s64", *WRAPPED):
        raise Unsupported("%s of %s" % (opcode, kind))
    bits = WRAPPED[kind].bit_length() if kind in WRAPPED else torch.iinfo(x.dtype).bits
    if not 0 <= y.number < bits:
        raise Unsupported("%s by %d" % (opcode, y.number))
    if opcode == "shift-left":
        return wrap(b, b.call("aten::bitwise_left_shift.Tensor_Scalar", x, y.number), kind)
    if kind in WRAPPED:  # never below zero
        return b.call("aten::bitwise_right_shift.Tensor_Scalar", x, y.number)
    if opcode == "shift-right-arithmetic":
        return b.call("aten::bitwise_right_shift.Tensor_Scalar", x, y.number)
    if opcode == "shift-right-logical":
        out = b.call("aten::bitwise_right_shift.Tensor_Scalar", x, y.number)
        low = (1 << (bits - y.number)) - 1  # the bits that are no copies of the sign
        return b.call("aten::bitwise_and.Scalar", out, low) if y.number else out
    raise Unsupported("%s of %s" % (opcode, kind))


def binary(b, opcode, x, y, kind, shape):
    if opcode.startswith("shift"):
        return shift(b, opcode, x, y, kind)
    if kind == "pred":
        opcode = LOGICAL.get(opcode, opcode)
        if opcode not in ("and", "or", "xor"):
            raise Unsupported("%s of truth values" % opcode)
    if opcode in COMMUTES and is_number(x) and not is_number(y):
        x, y = y, x
    if is_number(y) and not is_number(x):
        out = with_number(b, opcode, x, y.number)
        if out is not None:
            out = shapes.expand(b, out, shape)
            return wrap(b, out, kind) if opcode in WRAPS else out
    if opcode == "divide":
        return divide(b, x, y, shape)
    if is_number(x) and not is_number(y):
        x = b.full([], x.number, x.dtype)
    out = both(b, BINARY[opcode], x, y, shape)
    return wrap(b, out, kind) if opcode in WRAPS else out


def compare(b, direction, x, y, shape):
    if direction not in COMPARE:
        raise Unsupported("compare with direction %s" % direction)
    if is_number(x) and not is_number(y):
        x, y, direction = y, x, FLIPPED[direction]
    if is_number(y) and not is_number(x) and x.dtype != torch.bool:
        out = b.call("aten::%s.Scalar" % COMPARE[direction], x, y.number)
        return shapes.expand(b, out, shape)
    return both(b, "aten::%s.Tensor" % COMPARE[direction], x, y, shape)


def scalar(b, x):
    return b.full([], x.number, x.dtype) if is_number(x) else x


def select(b, c, x, y, shape):
    if is_number(c):
        return x if c.number else y
    c, x, y = implicit(b, [c, scalar(b, x), scalar(b, y)], shape)
    return b.call("aten::where.self", c, x, y)


def clamp(b, low, x, high, shape):
    if is_number(low) and is_number(high) and low.number <= high.number:
        return b.call("aten::clamp", x, low.number, high.number)
    low, x, high = implicit(b, [scalar(b, low), x, scalar(b, high)], shape)
    return both(b, "aten::minimum", b.call("aten::maximum", x, low), high, shape)


def convert(b, x, old, new):
    """To integers: towards zero, as both sides do; a number that the type cannot hold is
    undefined in PyTorch, and clamped in XLA."""
    if new == "pred":
        return b.call("aten::ne.Scalar", x, 0)
    if new in WRAPPED and not DTYPES[old].is_floating_point and old != "pred":
        low = 0 if old in UNSIGNED else -1
        wide = shapes.as_type(b, x, torch.int64)
        if x.known is not None and low < 0 and (x.known >= 0).all() and old != "s64":
            low = 0
        fits = low == 0 and (old not in WRAPPED or WRAPPED[old] <= WRAPPED[new])
        return wide if fits else wrap(b, wide, new)
    return shapes.as_type(b, x, dtype_of(new))
