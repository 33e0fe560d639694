"""dot and convolution."""

import re

from . import shapes
from .build import Unsupported, product
from .indexing import numbers
from .reductions import window


def dot(b, x, y, a, dtype):
    x, y = shapes.as_type(b, x, dtype), shapes.as_type(b, y, dtype)
    xb, yb = numbers(a.get("lhs_batch_dims")), numbers(a.get("rhs_batch_dims"))
    xk, yk = numbers(a.get("lhs_contracting_dims")), numbers(a.get("rhs_contracting_dims"))
    xm = [d for d in range(len(x.shape)) if d not in xb + xk]
    yn = [d for d in range(len(y.shape)) if d not in yb + yk]
    batch, m, n = ([s.shape[d] for d in dims] for s, dims in ((x, xb), (x, xm), (y, yn)))
    k = product(x.shape[d] for d in xk)
    left, right = shapes.permute(b, x, xb + xm + xk), shapes.permute(b, y, yb + yk + yn)
    if not xk:
        return outer(b, left, right, batch, m, n)
    right = shapes.view(b, right, batch + [k, product(n)])
    if batch:
        left = shapes.view(b, left, batch + [product(m), k])
    else:  # matmul takes any number of rows
        left = shapes.view(b, left, (m or [1]) + [k])
    return shapes.view(b, b.call("aten::matmul", left, right), batch + m + n)


def outer(b, x, y, batch, m, n):
    x = shapes.view(b, x, batch + m + [1] * len(n))
    y = shapes.view(b, y, batch + [1] * len(m) + n)
    return b.call("aten::mul.Tensor", x, y)


LABELS = re.compile(r"(\w+)_(\w+)->(\w+)$")


def by_label(labels, first, second):
    """The order of dimensions (first, second, spatial 0, 1, ...)."""
    spatial = sorted(c for c in labels if c.isdigit())
    return [labels.index(first), labels.index(second)] + [labels.index(c) for c in spatial]


def batches_as_features(b, x, n):
    """Each of n groups of batches has outputs of its own: as a group of features has them."""
    batch, features, *space = x.shape
    x = shapes.view(b, x, [n, batch // n, features] + space)
    x = shapes.permute(b, x, [1, 0, 2] + list(range(3, len(x.shape))))
    return shapes.view(b, x, [batch // n, n * features] + space)


def convolution(b, x, y, a):
    m = LABELS.match(a.get("dim_labels", ""))
    if m is None:
        raise Unsupported("dim_labels %r" % a.get("dim_labels", "")[:40])
    groups, batches = (int(a.get(k, "1")) for k in ("feature_group_count", "batch_group_count"))
    if groups != 1 and batches != 1:
        raise Unsupported("convolution with groups of features and of batches")
    n = len(m[1]) - 2
    w = window(a.get("window", ""), n)
    x = shapes.permute(b, x, by_label(m[1], "b", "f"))
    y = shapes.permute(b, y, by_label(m[2], "o", "i"))
    if batches != 1:
        x, groups = batches_as_features(b, x, batches), batches
    if n == 0:
        if groups != 1:
            raise Unsupported("convolution without space, in groups")
        out = b.call("aten::matmul", x, shapes.permute(b, y, [1, 0]))
        return shapes.permute(b, out, shapes.inverse(by_label(m[3], "b", "f")))
    if n > 3:
        raise Unsupported("convolution in %d dimensions" % n)
    flipped = [2 + d for d in range(n) if w["reversal"][d]]
    y = b.call("aten::flip", y, flipped) if flipped else y
    config = [[0, 0, 0]] * 2 + [[lo, hi, k - 1] for (lo, hi), k in zip(w["pad"], w["lhs_dilate"])]
    plain = all(lo == hi >= 0 for lo, hi in w["pad"]) and all(k == 1 for k in w["lhs_dilate"])
    padding = [lo for lo, _ in w["pad"]] if plain else [0] * n
    if not plain:
        x = shapes.pad(b, x, config, b.full([], 0, x.dtype))
    out = b.call(
        "aten::convolution",
        *(x, y, None, w["stride"], padding, w["rhs_dilate"], False, [0] * n, groups),
    )
    return shapes.permute(b, out, shapes.inverse(by_label(m[3], "b", "f")))
