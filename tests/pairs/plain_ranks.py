#!/usr/bin/env python3
"""Models in plain PyTorch (plain_models.py), whole against divided over ranks, forward and
backward, as plain_record.py records them; and the same with faults. Truth is by execution.

    tests/pairs/plain_ranks.py [--isomer build/isomer] [--seed N] [--count N] [--first K]
                               [--only TEXT] [--faults] [--mixed] [--keep FOLDER] [--table]

Each pair is drawn: model, plan, ranks, sizes, and how each side is written. Both sides run in
float64 first: a pair must agree there, a fault must show. The last line is `N passed, N failed`."""

import argparse
import collections
import os
import random
import sys
import tempfile
import zlib

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import distributed
import plain_models as models
import plain_record as record

WRITTEN = {  # a way of writing that both sides share two times of three
    "attention": ["fused", "grouped", "filled", "added", "baddbmm"],
    "embedding": ["clamp", "where", "mul", "fill"],
    "loss": ["clamp", "where", "late", "fill", "function"],
    "flat": ["flatten", "reshape"],
}
SHARED = {
    "linear": ["linear", "linear", "linear", "matmul", "einsum", "mm", "addmm"],
    "fused_qkv": [False, True],
    "tied": [False, False, True],
}


MASKED = ("filled", "added")  # attention in two ways that are one but for the mask


def draw(rng, mixed=False):
    """(size and style, style of the ranks' side, plan, ranks). mixed: attention is written in any
    two ways, which is harder than what the ranks do."""
    n = rng.choice([2, 2, 3, 4, 4, 6, 8])
    plan = rng.choice(["tensor", "tensor", "sequence", "data"])
    s = {k: rng.choice(v) for k, v in [*WRITTEN.items(), *SHARED.items()]}
    gpt = rng.random() < 0.4
    s["norm"] = rng.choice(["layer", "layer_written"] if gpt else ["rms", "rms_written"])
    s["feed"] = rng.choice(["gelu", "gelu_tanh", "relu"] if gpt else ["swiglu", "swiglu_fused"])
    s["rotation"] = None if gpt else rng.choice(["halves", "pairs", "complex"])
    s["bias"] = gpt or rng.random() < 0.3
    s["heads"] = n * rng.choice([1, 2])
    some = [g for g in range(n, s["heads"] + 1, n) if s["heads"] % g == 0]
    s["groups"] = s["heads"] if gpt else rng.choice(some)
    s["head"] = rng.choice([2, 4, 6])
    s["width"] = rng.choice([8, 10, 12, 16])
    s["inner"] = n * rng.choice([2, 3, 5])
    s["vocabulary"] = n * rng.choice([2, 3, 4])
    s["length"] = max(n * rng.choice([1, 2]), 4 if n in (2, 4) else 3)
    s["batch"] = rng.choice([1, 2, 3])
    if plan == "data":
        s["batch"], s["length"] = n * rng.choice([1, 2]), rng.choice([3, 4])
    s["layers"] = rng.choice([1, 1, 2])
    s["replicas"] = rng.random() < 0.3
    other = dict(s)
    for k, ways in WRITTEN.items():
        if rng.random() < 0.33:
            way = rng.choice(ways)
            if mixed or k != "attention" or (s[k] in MASKED and way in MASKED):
                other[k] = way
    return s, other, plan, n


def drawn(name, shape, dtype):
    """A parameter's values: of its name."""
    g = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    t = torch.randn(*shape, generator=g) * 0.3
    return (t + 1 if "norm" in name and name.endswith("weight") else t).to(dtype)


# faults: in the ranks' program


class Faulty(record.Collectives):
    """The k-th use of a collective is not as it should be."""

    def __init__(self, world, fault, k):
        record.Collectives.__init__(self, world)
        self.fault, self.left = fault, k

    def here(self, fault):
        if self.fault != fault:
            return False
        self.left -= 1
        return self.left == -1

    def copy(self, x):
        if self.here("gradient not added up"):
            return x
        return record.Collectives.copy(self, x)

    def reduce(self, x):
        if self.here("gradient added up twice"):
            return self.pair(x, self.sum, self.sum)
        if self.here("not added up"):
            return x
        if self.here("averaged"):
            return self.pair(x, lambda x: self.sum(x) / self.world.n, self.same)
        return record.Collectives.reduce(self, x)

    def gather(self, x, d):
        if self.here("gradient cut, not added up"):
            return self.gather_same(x, d)
        return record.Collectives.gather(self, x, d)

    def plain(self, x, how="sum"):
        if how == "max" and self.here("own maximum"):
            return x
        return record.Collectives.plain(self, x, how)


class FaultyPlan(models.Plan):
    def outside(self, ids, first, size):
        if self.c.here("not masked"):
            return torch.zeros_like(ids, dtype=torch.bool)
        if self.c.here("masked one off"):
            return models.Plan.outside(self, ids, first + 1, size)
        return models.Plan.outside(self, ids, first, size)

    def biased(self, y, bias):
        if bias is not None and self.c.here("bias on each rank"):
            return self.leave(y + bias)
        return models.Plan.biased(self, y, bias)


FAULTS = {
    "tensor": [
        "gradient not added up",
        "gradient added up twice",
        "not added up",
        "averaged",
        "own maximum",
        "not masked",
        "masked one off",
        "bias on each rank",
    ],
    "sequence": [
        "gradient cut, not added up",
        "own maximum",
        "not masked",
        "masked one off",
        "bias on each rank",
        "norm's gradient not added up",
    ],
    "data": ["gradient not averaged", "loss not averaged", "gradient of one rank"],
}


# one side


class Side:
    """What a world runs: a model, its loss, its gradients."""

    def __init__(self, s, plan, backward, fault, dtype):
        self.s, self.kind, self.backward, self.fault, self.dtype = s, plan, backward, fault, dtype

    def leaf(self, world, kind, name, t, shared=False):
        if world.recorder:
            whole = world.n == 1 or shared
            name = name if whole else world.recorder.named(name)
            world.recorder.graph.leaf(None if shared else world.rank, kind, name, t)
        return t

    def ids(self, world, name):
        s = self.s
        g = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        t = torch.randint(0, s["vocabulary"], (s["batch"], s["length"]), generator=g)
        if self.kind == "data":
            t = t.chunk(world.n)[world.rank].contiguous()
        shared = self.kind != "data" and not s["replicas"]
        if shared and world.rank > 0:
            return SHARED_INPUT[name]
        SHARED_INPUT[name] = self.leaf(world, "input", name, t, shared)
        return t

    def __call__(self, world):
        fault, k = self.fault or (None, 0)
        c = Faulty(world, fault, k) if fault else record.Collectives(world)
        plan = (FaultyPlan if fault else models.Plan)(self.kind, world, c)
        model = models.Decoder(self.s, plan)
        params = dict(model.named_parameters())
        for name, p in params.items():
            p.data = models.share(p, drawn(name, p.full, self.dtype), plan.rank, plan.n)
            p.data = p.data.contiguous().clone()
            self.leaf(world, "parameter", name, p)
        ids, labels = self.ids(world, "ids"), self.ids(world, "labels")
        if not world.recorder:
            return self.steps(world, plan, model, params, ids, labels)
        with world.recorder:
            return self.steps(world, plan, model, params, ids, labels)

    def steps(self, world, plan, model, params, ids, labels):
        c, data = plan.c, self.kind == "data"
        y = model(ids)
        loss = models.vocabulary_loss(y, labels, self.s, plan)
        mean = loss if data and c.here("loss not averaged") else None
        out = {"loss": mean if mean is not None else c.plain(loss, "avg") if data else loss}
        if not self.backward:
            return dict(out, logits=y), params
        late = model.sequence_gradients()
        grads = torch.autograd.grad(loss, list(params.values()))
        for name, g in zip(params, grads):
            if data and not c.here("gradient of one rank"):
                g = c.plain(g, "sum" if c.here("gradient not averaged") else "avg")
            if name in late and not c.here("norm's gradient not added up"):
                g = c.plain(g)
            out["grad." + name] = g
        return out, params


SHARED_INPUT = {}


def relations(s, plan, n, outs, params):
    """Lines for what is cut; replicas pair by their names."""
    lines = ["input labels range 0 %d" % (s["vocabulary"] - 1)]
    each = lambda f: ", ".join(f(r) for r in range(n))
    if plan == "data":
        for k in ("ids", "labels"):
            lines.append("input %s = cat([%s], 0)" % (k, each(lambda r: "rank%d.%s" % (r, k))))
    elif s["replicas"]:
        for k in ("ids", "labels"):
            lines += ["input %s = rank%d.%s" % (k, r, k) for r in range(n)]
    for name in outs:
        p = params.get(name[5:])
        cut = {"data": 0}.get(plan, 2) if name == "logits" else p.cut if p is not None else None
        if cut is None:
            continue
        if p is None or not p.parts:
            parts = each(lambda r: "%s.part%d" % (name, r))
        else:
            ends = [0]
            for size in p.parts:
                ends.append(ends[-1] + size // n)
            parts = ", ".join(
                "slice(%s.part%d, %d, %d, %d)" % (name, r, cut, a, b)
                for a, b in zip(ends, ends[1:])
                for r in range(n)
            )
        lines.append("output %s = cat([%s], %d)" % (name, parts, cut))
    return lines


def side(n, s, plan, backward, fault=None, dtype=torch.float32, recorded=True):
    """(graph, [outputs of each rank], parameters of rank 0)"""
    SHARED_INPUT.clear()
    was = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        graph, out = record.run(n, Side(s, plan, backward, fault, dtype), recorded)
    finally:
        torch.set_default_dtype(was)
    return graph, [o for o, _ in out], out[0][1]


def named(outs, lines):
    """All ranks' outputs by name: parts, or replicas one behind the other."""
    cut = {line.split()[1] for line in lines if line.startswith("output")}
    out = {}
    for name in outs[0]:
        for r, o in enumerate(outs):
            k = "%s.part%d" % (name, r) if name in cut else name if r == 0 else None
            out[k or "%s_rank%d" % (name, r)] = r, o[name]
    return out


def whole_of(name, outs, plan, params):
    """What the ranks' outputs of this name are together: one for each replica."""
    p = params.get(name[5:])
    cut = {"data": 0}.get(plan, 2) if name == "logits" else p.cut if p is not None else None
    if cut is None:
        return [o[name] for o in outs]
    each = [o[name] for o in outs]
    if p is not None and p.parts:
        own = [size // len(outs) for size in p.parts]
        pieces = [g.split(own, cut) for g in each]
        return [torch.cat([q[k] for k in range(len(own)) for q in pieces], cut)]
    return [torch.cat(each, cut)]


def farthest(s, other, plan, n, backward, fault=None):
    """How far the sides are apart in float64, of the largest element of each output."""
    _, left, _ = side(1, s, "whole", backward, None, torch.float64, False)
    _, right, params = side(n, other, plan, backward, fault, torch.float64, False)
    far = 0.0
    for name, t in left[0].items():
        for w in whole_of(name, right, plan, params):
            far = max(far, ((w - t).abs().max() / t.abs().max().clamp(min=1e-3)).item())
    return far


def write(folder, s, other, plan, n, backward, fault=None):
    graph, left, _ = side(1, s, "whole", backward)
    graph.write(os.path.join(folder, "left"), named(left, []))
    graph, right, params = side(n, other, plan, backward, fault)
    lines = relations(other, plan, n, right[0], params) if n > 1 else []
    graph.write(os.path.join(folder, "right"), named(right, lines))
    with open(os.path.join(folder, "relations"), "w", encoding="utf-8") as f:
        f.write("".join(line + "\n" for line in lines))


def title(s, other, plan, n, backward):
    def said(k):
        v = (
            {False: "0", True: "1", None: "-"}.get(s[k], s[k])
            if s[k] in (True, False, None)
            else s[k]
        )
        return "%s=%s%s" % (k, v, "" if s[k] == other[k] else "/%s" % other[k])

    return "%s r%d %s %s" % (plan, n, "back" if backward else "fwd", " ".join(said(k) for k in s))


def cases(options):
    for k in range(options.first, options.first + options.count):
        rng = random.Random("plain %d %d" % (options.seed, k))
        s, other, plan, n = draw(rng, options.mixed)
        backward = rng.random() < 0.75
        fault = (rng.choice(FAULTS[plan]), rng.choice([0, 0, 1])) if options.faults else None
        name = title(s, other, plan, n, backward)
        if options.only in name:
            yield k, name, (s, other, plan, n, backward, fault)


def judged(name, case, folder, isomer):
    """(what is wrong or None, the line, the verdict)"""
    fault = case[-1]
    try:
        far = farthest(*case)
    except (IndexError, RuntimeError):
        if not fault:
            raise
        return None, name, "no program"  # an index beyond a rank's part
    if not fault and far > 1e-9:
        return "sides are %g apart" % far, name, "generator"
    if fault and far < 1e-6:
        return None, name, "no fault"
    write(folder, *case)
    found = distributed.compare(isomer, folder)
    wrong, line = distributed.judged(name, found)
    if fault:
        wrong = found[0] if found[0] not in ("different", "undecided", "limit") else None
    return wrong, line, found[0]


def main():
    a = argparse.ArgumentParser(description="plain PyTorch, whole against several ranks")
    a.add_argument("--isomer", default=os.path.join(distributed.ROOT, "build", "isomer"))
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=8)
    a.add_argument("--first", type=int, default=0)
    a.add_argument("--only", default="")
    a.add_argument("--faults", action="store_true")
    a.add_argument("--mixed", action="store_true", help="attention written in any two ways")
    a.add_argument("--keep", help="a folder for the captures")
    a.add_argument("--limit", type=int, default=60, help="seconds of processor time")
    a.add_argument("--table", action="store_true", help="print a line for each pair")
    options = a.parse_args()
    distributed.LIMIT = options.limit
    if not options.table:
        distributed.SECONDS = options.limit
    passed = failed = 0
    verdicts = collections.Counter()
    for k, name, case in cases(options):
        with tempfile.TemporaryDirectory() as own:
            folder = (
                os.path.join(options.keep, "%d-%d" % (options.seed, k)) if options.keep else own
            )
            wrong, line, verdict = judged(name, case, folder, options.isomer)
        passed += wrong is None
        failed += wrong is not None
        verdicts[verdict] += 1
        if options.table or wrong:
            line = "%d-%d %s%s" % (options.seed, k, "%s: " % (case[-1],) if case[-1] else "", line)
            print("%s%s" % ("FAILED %s: " % wrong if wrong else "", line), flush=True)
    if options.table:
        print(", ".join("%d %s" % (n, v) for v, n in sorted(verdicts.items())))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
