#!/usr/bin/env python3
"""Whether the refactorings' expectations are true: both sides of each run by PyTorch in float64 on
several draws, without Isomer.

    tests/pairs/truth.py [--only NAME] [--draws N]

Needs Python's torch. What must be equal is so on all draws, and a wrong twin differs on one. Shapes
and dtypes that dsl.py inferred are checked too."""

import argparse
import math
import sys

import torch

import dsl
import refactoring
import traps  # noqa: F401  all pairs

DTYPE = {d: getattr(torch, d) for d in dsl.ORDER if hasattr(torch, d)}
DTYPE.update({dsl.e4m3: torch.float8_e4m3fn, dsl.e5m2: torch.float8_e5m2})


def wide(name):
    """Floats are all float64."""
    return (
        torch.complex128
        if "complex" in name
        else torch.float64
        if dsl.KIND[name] == 2
        else DTYPE[name]
    )


def tensor(data, name):
    return (
        torch.tensor(data.values, dtype=torch.float64 if dsl.KIND[name] == 2 else DTYPE[name])
        .reshape(data.shape)
        .to(wide(name))
    )


class Run:
    def __init__(self, graph):
        self.graph, self.at = graph, {}

    def value(self, v):
        if isinstance(v, dict):
            if "ref" in v:
                return self.at[v["ref"]]
            return wide(v["dtype"]) if "dtype" in v else float(v["float"])
        return [self.value(x) for x in v] if isinstance(v, list) else v

    def node(self, n):
        g = self.graph
        if n["op"] in ("input", "parameter", "buffer", "constant"):
            return tensor(*(g.inputs if n["op"] == "input" else g.weights)[n["name"]])
        args, kwargs = (
            [self.value(a) for a in n["args"]],
            {k: self.value(v) for k, v in n["kwargs"].items()},
        )
        if n["op"] == "getitem":
            return args[0][args[1]]
        space, _, name = n["op"].partition("::")
        op, _, overload = name.partition(".")
        if op in ("arange", "full", "zeros", "ones", "eye") and "dtype" not in kwargs:
            if dsl.KIND[n["outputs"][0]["dtype"]] == 2:
                kwargs["dtype"] = torch.float64
        return getattr(getattr(getattr(torch.ops, space), op), overload or "default")(
            *args, **kwargs
        )

    def all(self):
        for n in self.graph.nodes:
            v = self.at[n["id"]] = self.node(n)
            for one, said in zip(v if isinstance(v, (list, tuple)) else [v], n["outputs"]):
                if list(one.shape) != list(said["shape"]) or one.dtype != wide(said["dtype"]):
                    raise ValueError(
                        "%s: %s of %s, said to be %s of %s"
                        % (n["op"], list(one.shape), one.dtype, said["shape"], said["dtype"])
                    )


def outputs(build):
    g = dsl.Graph()
    out = build(g)
    run = Run(g)
    run.all()
    return {k: run.at[t.ref] for k, t in (out if isinstance(out, dict) else {"y": out}).items()}


def gap(pair):
    """The largest difference of the outputs relative to their size, and whether numbers were
    compared."""
    worst, told = 0.0, False
    left, right = (outputs(s) for s in pair.sides)
    assert left.keys() == right.keys()
    for k in left:
        a, b = (x if x.is_complex() else x.double() for x in (left[k], right[k]))
        if a.shape != b.shape:
            raise ValueError("outputs of %s and %s" % (list(a.shape), list(b.shape)))
        same = (a == b) | (a.isnan() & b.isnan())
        told = told or bool((~a.isnan()).any())
        scale = max(1e-6, a.nan_to_num(0, 0, 0).abs().max().item()) if a.numel() else 1.0
        d = torch.where(same, torch.zeros_like(a).abs(), (a - b).abs())
        worst = max(worst, d.nan_to_num(math.inf).max().item() / scale if a.numel() else 0.0)
    return worst, told


def main():
    a = argparse.ArgumentParser(description="expectations of refactorings, by PyTorch")
    a.add_argument("--only", default="")
    a.add_argument("--draws", type=int, default=4)
    options = a.parse_args()
    torch.set_default_dtype(torch.float64)
    bad = 0
    pairs = [
        p
        for p in dsl.PAIRS.values()
        if p.name.startswith("refactored: ")
        and options.only in p.name
        and "the kernel of" not in p.name
    ]
    for p in pairs:
        try:
            gaps = []
            for dsl.DRAW in (
                (0, 1, 2, 5, 7, 8) if p.name in refactoring.REFACTORINGS else (0, 1, 3, 6, 7, 8)
            )[: options.draws]:
                gaps.append(gap(p))
            equal = all(d < 1e-9 for d, _ in gaps) and all(told for _, told in gaps)
            wrong = (
                None
                if equal == (p.name in refactoring.REFACTORINGS)
                else "relative differences %s"
                % ", ".join("%.3g%s" % (d, "" if t else " (no number)") for d, t in gaps)
            )
        except Exception as e:  # the pair is malformed
            wrong = "%s: %s" % (type(e).__name__, str(e).split("\n")[0])
        dsl.DRAW = 0
        if wrong:
            bad += 1
            print("FAILED %s: %s" % (p.name, wrong), flush=True)
    print("%d pairs, %d failed" % (len(pairs), bad))
    return 1 if bad or not pairs else 0


if __name__ == "__main__":
    sys.exit(main())
