#!/usr/bin/env python3
"""isomer.checked("inductor") over families of Transformers: each graph pass of Inductor that
changes a graph is compared, and passes that are broken on purpose are named.

    tests/capture_py/checked_families.py [--isomer build/isomer] [--broken N] [--table FILE]
        [--seconds 30] [FAMILY...]

The models are those of `isomer-capture hf FAMILY --reduce --layers 2`. No pass may be `different`
(a failure); what is undecided is listed. Then N passes (0 without --broken), one after another, are
broken: a pass also changes an operator of its graph. The error must name it. The
last line is `N passed, N failed`."""

import argparse
import collections
import os
import sys
import time
import types

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FAMILIES = """llama gpt2 bert mistral qwen2 qwen3 gemma gemma3_text phi phi3 opt bloom gpt_neox
falcon olmo2 stablelm cohere granite starcoder2 vit""".split()


def model_of(family):
    """(a model, its example inputs by name)"""
    from isomer_capture import CaptureError, configs, hf

    o = types.SimpleNamespace(
        model=family, reduce=True, layers=2, settings=[], attn="sdpa", experts="batched_mm",
        length=9, sets=1, dtype="float32", head=None, seed=0, batch=1, dynamic={}, static=False,
        cached=None,
    )  # fmt: skip
    config, weights = hf.prepare(o)
    try:
        model = hf.build(o, config, weights)
    except CaptureError:  # where there is no other
        o.attn = "eager"
        model = hf.build(o, config, weights)
    return model, configs.input_sets(config, model, o, hf.call_for(model))[0]


def compiled(family, seconds, on_difference):
    """The checks of a family's passes, and the seconds that all of it took."""
    import isomer
    import torch
    from isomer_capture import hf

    model, inputs = model_of(family)
    backend = isomer.checked(
        "inductor", generate=False, on_difference=on_difference, timeout=seconds
    )
    torch._dynamo.reset()
    began = time.monotonic()
    with torch.no_grad():
        call = hf.call_for(model)
        torch.compile(lambda **x: call(model, **x), backend=backend)(**inputs)
    return backend.checks, time.monotonic() - began


def verdict(check):
    return check.result.verdict if check.result is not None else "not checked"


# Operators that stand in every model, and what a broken pass makes of one.
def weaken(node):
    import torch

    aten = torch.ops.aten
    swaps = {
        aten.mul.Tensor: aten.add.Tensor,
        aten.add.Tensor: aten.sub.Tensor,
        aten.sub.Tensor: aten.add.Tensor,
        aten.rsqrt.default: aten.sqrt.default,
        aten.cos.default: aten.sin.default,
        aten.tanh.default: aten.sigmoid.default,
        aten.exp.default: aten.tanh.default,
    }
    if node.op == "call_function" and node.target in swaps and len(node.users):
        node.target = swaps[node.target]
        return True
    return False


def broken(family, n, seconds):
    """(how many of up to n passes of a family, broken, are named; how many were broken)"""
    from torch.fx.passes.graph_transform_observer import GraphTransformObserver as Observer

    names, enter = [], Observer.__enter__

    def listed(self):
        if self.passname not in names:
            names.append(self.passname)
        return enter(self)

    Observer.__enter__ = listed
    try:
        compiled(family, seconds, "warn")
    finally:
        Observer.__enter__ = enter
    named = tried = 0
    for k, name in enumerate(names):
        if tried == n:
            break
        done = []

        def faulty(self, name=name, k=k, done=done):
            floating = [
                m for m in self.gm.graph.nodes
                if getattr(m.meta.get("val"), "dtype", None) is not None
                and m.meta["val"].is_floating_point()
            ]  # fmt: skip
            if self.passname == name and not done:
                for m in floating[k % 7 :]:
                    if weaken(m):
                        done.append(m)
                        break
            return enter(self)

        Observer.__enter__ = faulty
        found = []
        try:
            checks, _ = compiled(family, seconds, found.append)
        finally:
            Observer.__enter__ = enter
        if not done:
            continue  # no such operator stood in its graph
        tried += 1
        said = [c.name for c in found]
        named += name in said
        seen = said or "not found: " + ", ".join("%s %s" % (c.name, verdict(c)) for c in checks)
        print("%s broken at %s: %s" % (name, done[0], seen), flush=True)
    return named, tried


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--broken", type=int, default=0, help="how many passes to break")
    a.add_argument("--seconds", type=int, default=30, help="for each comparison")
    a.add_argument("--table", help="a Markdown table, as a file")
    a.add_argument("families", nargs="*")
    o = a.parse_args()
    os.environ["ISOMER"] = o.isomer
    sys.path.insert(0, os.path.join(ROOT, "capture"))
    rows, passed, failed = [], 0, 0
    for family in o.families or FAMILIES:
        try:
            checks, took = compiled(family, o.seconds, lambda check: None)
        except Exception as e:  # PyTorch's compiler, or ours inside it
            failed += 1
            rows.append("| %s | none: %s | | |" % (family, " ".join(str(e).split())[:200]))
            print(rows[-1], flush=True)
            continue
        counts = collections.Counter(verdict(c) for c in checks)
        open_ones = ["%s %s" % (c.name, c.why or "") for c in checks if verdict(c) != "equivalent"]
        bad = counts["different"]
        passed, failed = passed + (not bad), failed + bool(bad)
        said = ", ".join("%d %s" % (n, v) for v, n in sorted(counts.items()))
        rows.append("| %s | %s | %s | %.0f |" % (family, said, "; ".join(open_ones) or "", took))
        print(rows[-1], flush=True)
    if o.broken:
        named, tried = broken((o.families or FAMILIES)[0], o.broken, o.seconds)
        print("%d of %d broken passes are named" % (named, tried))
        passed, failed = passed + named, failed + tried - named + (tried < o.broken)
    if o.table:
        with open(o.table, "w", encoding="utf-8") as f:
            f.write("| family | passes | open | s |\n| --- | --- | --- | --- |\n")
            f.write("\n".join(rows) + "\n")
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
