"""Certificates and captures refused before any work, and numbers past all bounds (forged.py)."""

import os
import tempfile

from forging import HOLDS, REFUSED, WHERE, Certificate, compared, ref, two
from harness import expect, isomer, short

# ---- what is refused before any work ----


def declared_dtypes():
    """An operator of a library, whose dtype no table knows, gives floats where the graph says
    integers."""
    for dtype, status in (("float32", 0), ("float16", 0), ("int64", 2), ("bool", 2)):

        def build(c, side):
            c.leaf("x", "input", "float32", [0.5, -1.25])
            c.op("y", "dist::all_reduce", [[ref("x"), ref("x")], "sum"], [2], dtype)

        left, right = two(build)
        r = isomer("compare", left, right, "-q")
        expect(r.status == status, "%s: status %d: %s", dtype, r.status, short(r.out or r.err))
        expect(
            status == 0
            or (
                r.err.count(b"\n") == 1
                and b"output is %s in the graph, its operator gives float64" % dtype.encode()
                in r.err
            ),
            "%s: %s",
            dtype,
            short(r.err),
        )


def targets():
    """Files that cannot be written, and one file for two results: refused at once, and nothing is
    written."""

    def build(c, side):
        c.leaf("x", "input", "float32", [0.5, -1.25])
        c.op("y", "aten::exp" if side else "aten::sin", [ref("x")], [2])

    left, right = two(build)
    folder = tempfile.mkdtemp(dir=WHERE.name)
    missing, one, other = (
        os.path.join(folder, "none", "f"),
        os.path.join(folder, "f"),
        os.path.join(folder, ".", "f"),
    )
    for option in (
        "--json",
        "--html",
        "--save-rules",
        "--certificate",
        "--sarif",
        "--junit",
        "--counterexample",
        "--repro",
    ):
        for path in (missing, folder):
            r = isomer("compare", left, right, option, path)
            expect(
                r.status == 2
                and r.out == b""
                and r.err.count(b"\n") == 1
                and b"cannot be written" in r.err,
                "%s: status %d: %s",
                option,
                r.status,
                short(r.err),
            )
    for options in (
        ("--json", one, "--html", one),
        ("--repro", one, "--counterexample", other),
        ("--sarif", "-", "--json", "-"),
    ):
        r = isomer("compare", left, right, *options)
        expect(
            r.status == 2 and r.out == b"" and r.err.count(b"\n") == 1 and b"one file" in r.err,
            "%s: status %d: %s",
            options,
            r.status,
            short(r.err),
        )
    expect(os.listdir(folder) == [], "left behind: %s", os.listdir(folder))
    r = isomer(
        "compare",
        left,
        right,
        "--json",
        one,
        "--html",
        os.path.join(folder, "g"),
        "--repro",
        os.devnull,
    )
    expect(
        r.status == 1 and sorted(os.listdir(folder)) == ["f", "g"],
        "status %d, %s",
        r.status,
        os.listdir(folder),
    )


# ---- numbers past all bounds ----


def deep_questions():
    """Whether a chain of squares is a constant: an answer, and soon, though the ways down it double
    with each step."""

    def build(c, side):
        c.leaf("x", "input", "float32", [0.5, -1.25, 2.0, 3.5])
        c.op("y", "aten::mul.Tensor", [ref("x"), ref("x")], [4])

    c = Certificate(*two(build))
    xl, yl = c.left("x", "y")
    xr, yr = c.right("x", "y")
    t = xl
    for _ in range(40):
        t = c.call("aten::mul.Tensor", ref(t), ref(t))
    c.step("value", (t, yr))
    c.check(yl, yr, REFUSED, "which is no constant")


def huge_literals():
    """A clamp at 1e30, which no sample reaches: an answer, and soon, which is not that nothing is
    ever clamped."""

    def build(c, side):
        c.leaf("x", "input", "float32", [0.5, -1.25, 2.0, 3.5])
        c.op(
            "y",
            "aten::clamp" if side else "aten::alias",
            [ref("x")] + ([-1e30, 1e30] if side else []),
            [4],
        )

    left, right = two(build)
    compared(left, right, 3)


def endless_memory():
    """Calls of the certificate's own that make one large tensor after the other."""

    def build(c, side):
        c.leaf("x", "input", "float32", [0.5, -1.25, 2.0, 3.5])
        c.op("y", "aten::alias", [ref("x")], [4])

    c = Certificate(*two(build))
    xl, yl = c.left("x", "y")
    xr, yr = c.right("x", "y")
    for k in range(40):
        t = c.call(
            "aten::full", [1 << 12, 1 << 12], float(k), {"dtype": "float32"}, None, None, None
        )
        c.step("value", (t, t))
    c.step("leaf", (xr, xl))
    c.step("same", (yl, yr))
    c.check(yl, yr, REFUSED, "more than any capture needs")


def open_ends():
    """The largest integer as the end of a range is the dimension's own; as a size it is none."""

    def build(c, side):
        c.leaf("x", "input", "float32", [0.5, -1.25, 2.0, 3.5])
        c.op("y", "aten::alias", [ref("x")], [4])

    last, dtype = 2**63 - 1, {"dtype": "float32"}
    for op, size, args, says in (
        ("slice_backward", 2, ([4], 0, 2, last, 1), "HOLDS"),
        ("slice.Tensor", 2, (0, 1, last, 1), "HOLDS"),
        ("slice_backward", 2, ([last], 0, 2, last, 1), "sizes past all bounds"),
        ("slice_backward", 2, ([4], 0, 2, last, last), "sizes past all bounds"),
        ("constant_pad_nd", 2, ([0, last], 0.0), "sizes past all bounds"),
    ):
        c = Certificate(*two(build))
        xl, yl = c.left("x", "y")
        xr, yr = c.right("x", "y")
        t = c.call("aten::full", [size], 1.0, dtype, None, None, None)
        t = c.call("aten::" + op, ref(t), *args)
        c.step("value", (t, t))
        c.step("leaf", (xr, xl))
        c.step("same", (yl, yr))
        c.check(yl, yr, HOLDS if says == "HOLDS" else REFUSED, says)


def said_too_much():
    """An output that is listed twice, and masks that neither capture has, on a true certificate."""

    def build(c, side):
        c.leaf("x", "input", "float32", [0.5, -1.25, 2.0, 3.5])
        c.op("y", "aten::alias", [ref("x")], [4])

    for change, says in (
        (None, "HOLDS"),
        (lambda d: d.update(outputs=d["outputs"] * 2), "listed twice"),
        (lambda d: d.update(masks_read=[True, False]), "there are none"),
        (lambda d: d.update(masks_read=[False, True]), "there are none"),
    ):
        c = Certificate(*two(build))
        xl, yl = c.left("x", "y")
        xr, yr = c.right("x", "y")
        c.step("leaf", (xr, xl))
        c.step("same", (yl, yr))
        c.check(yl, yr, REFUSED if change else HOLDS, says, change=change)
