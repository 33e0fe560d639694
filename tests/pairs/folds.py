#!/usr/bin/env python3
"""Parameters that were computed when a model was loaded, drawn by seed, and their faulty twins.

    tests/pairs/folds.py [--isomer build/isomer] [--count 40] [--seed 0] [--only KIND]
    [--certificates]

One side computes with the parameters that were trained, the other with what a loader made of them,
in their dtype: a batch norm in the convolution before it, a merged adapter, scaled-back integers.
The true twin must be `equivalent`, whichever side it is on; a loader's fault (another eps, a scale
along the wrong dimension, applied twice or not at all, a bias that was forgotten) `different`.
PyTorch says of each that it is so on the captured values. The last line is `N passed, N failed`."""

import argparse
import os
import random
import subprocess
import sys
import tempfile

import dsl
import torch
import truth

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VERDICT = {0: dsl.EQUIVALENT, 1: dsl.DIFFERENT, 3: dsl.UNDECIDED}


class Draw:
    """Sizes and tensors of one case."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.torch = torch.Generator().manual_seed(self.rng.randrange(2**31))

    def size(self, *choices):
        return self.rng.choice(choices)

    def normal(self, *shape, shift=0.0):
        return torch.randn(*shape, generator=self.torch, dtype=torch.float32) + shift

    def positive(self, *shape):
        return self.normal(*shape).abs() + 0.3

    def int8(self, *shape):
        return torch.randint(-128, 128, shape, generator=self.torch, dtype=torch.int8)


class Case:
    """The parameters as trained and their graph, those as loaded and theirs, and faulty loads."""

    def __init__(self, trained, run, loaded, folded, **faults):
        self.trained, self.run, self.loaded, self.folded = trained, run, loaded, folded
        self.faults = {name: dict(loaded, **wrong) for name, wrong in faults.items()}
        self.said = None  # (what, parameter): a line of a relations file, wrong of faulty loads
        self.rounds = 1e-4  # how far the true twin may be off
        self.near = set()  # faults that may be undecided, as they are near to rounding


def leaves(g, tensors):
    """The tensors as leaves of the graph, by name; integers and `running_` are buffers."""
    kinds = {
        torch.float32: dsl.f32,
        torch.int8: dsl.i8,
        torch.bfloat16: dsl.bf16,
        torch.float16: dsl.f16,
    }
    out = {}
    for name, t in tensors.items():
        held = t.dtype == torch.int8 or name.startswith("running")
        data = dsl.Data(tuple(t.shape), t.reshape(-1).tolist())
        out[name] = g.param(
            name, data, dtype=kinds[t.dtype], kind="buffer" if held else "parameter"
        )
    return out


# ---- kinds ----


def batch_norm(d):
    out, inner, k = d.size(5, 6, 8), d.size(3, 4), d.size(1, 3)
    eps, bias = d.size(1e-5, 1e-3), d.size(True, False)
    p = {"conv.weight": d.normal(out, inner, k, k), "bn.weight": d.normal(out, shift=1)}
    p.update({"bn.bias": d.normal(out), "running_mean": d.normal(out)})
    p["running_var"] = d.positive(out)
    if bias:
        p["conv.bias"] = d.normal(out)
    size = 7 - k + 1

    def conv(g, w, b):
        args = [g.x(2, inner, 7, 7), w, b]
        return g.op("conv2d", args, [((2, out, size, size), dsl.f32)])[0]

    def run(g, t):
        y = conv(g, t["conv.weight"], t.get("conv.bias"))
        names = ("bn.weight", "bn.bias", "running_mean", "running_var")
        args = [y, *(t[n] for n in names), False, 0.1, eps, False]
        return y.op("batch_norm", args).relu()

    def load(eps, scale=1.0):
        s = p["bn.weight"] * torch.rsqrt(p["running_var"] + eps) * scale
        b = (p["conv.bias"] if bias else 0) - p["running_mean"]
        return {"weight": p["conv.weight"] * s.reshape(-1, 1, 1, 1), "bias": b * s + p["bn.bias"]}

    loaded = load(eps)
    twice = load(eps, p["bn.weight"])
    no_mean = dict(loaded, bias=loaded["bias"] + p["running_mean"])
    return Case(
        p,
        run,
        loaded,
        lambda g, t: conv(g, t["weight"], t["bias"]).relu(),
        eps=load(eps * 10),
        twice=twice,
        no_mean=no_mean,
    )


def adapter(d):
    out, inner, rank = d.size(6, 8), d.size(8, 12), d.size(1, 2, 3)
    scale = d.size(0.5, 2.0, 16 / 3, 1.0)
    p = {"weight": d.normal(out, inner), "lora_A": d.normal(rank, inner)}
    p["lora_B"] = d.normal(out, rank)

    def run(g, t):
        x = g.x(5, inner)
        return x.linear(t["weight"]) + x.linear(t["lora_A"]).linear(t["lora_B"]) * scale

    def load(s):
        return {"weight": p["weight"] + p["lora_B"] @ p["lora_A"] * s}

    return Case(
        p,
        run,
        load(scale),
        lambda g, t: g.x(5, inner).linear(t["weight"]),
        twice=load(2 * scale),
        forgotten={"weight": p["weight"]},
        other_rank=load(scale * 1.01),
    )


def weight_norm(d):
    out, inner = d.size(6, 8), d.size(6, 8)
    p = {"weight_v": d.normal(out, inner), "weight_g": d.positive(out, 1)}

    def run(g, t):
        w = t["weight_v"].op("_weight_norm", [t["weight_v"], t["weight_g"], 0])
        return g.x(5, inner).linear(w)

    def load(dim):
        return {"w": p["weight_v"] / p["weight_v"].norm(dim=dim, keepdim=True) * p["weight_g"]}

    return Case(
        p,
        run,
        load(1),
        lambda g, t: g.x(5, inner).linear(t["w"]),
        other_dimension=load(0),
        no_scale={"w": p["weight_v"] / p["weight_v"].norm(dim=1, keepdim=True)},
    )


def rms(x):
    return x * ((x * x).mean(-1, True) + 1e-6).rsqrt()


def norm_scale(d):
    n = d.size(6, 8, 12)
    p = {"norm.weight": d.normal(n, shift=1), "weight": d.normal(n, n), "bias": d.normal(n)}
    plus = d.size(True, False)

    def run(g, t):
        s = t["norm.weight"] + 1.0 if plus else t["norm.weight"]
        return (rms(g.x(5, n)) * s).linear(t["weight"], t["bias"])

    s = p["norm.weight"] + plus
    return Case(
        p,
        run,
        {"w": p["weight"] * s, "bias": p["bias"]},
        lambda g, t: rms(g.x(5, n)).linear(t["w"], t["bias"]),
        transposed={"w": p["weight"] * s.reshape(-1, 1)},
        twice={"w": p["weight"] * s * s},
        other_offset={"w": p["weight"] * (s + 1)},
    )


def layer_norm(d):
    n, m = d.size(6, 8), d.size(5, 9)
    p = {"ln.weight": d.normal(n, shift=1), "ln.bias": d.normal(n)}
    p.update({"weight": d.normal(m, n), "bias": d.normal(m)})
    loaded = {"w": p["weight"] * p["ln.weight"], "b": p["weight"] @ p["ln.bias"] + p["bias"]}
    return Case(
        p,
        lambda g, t: (
            g.x(5, n).layer_norm(t["ln.weight"], t["ln.bias"]).linear(t["weight"], t["bias"])
        ),
        loaded,
        lambda g, t: g.x(5, n).layer_norm().linear(t["w"], t["b"]),
        no_bias=dict(loaded, b=p["bias"]),
        bias_scaled=dict(loaded, b=loaded["w"] @ p["ln.bias"] + p["bias"]),
        no_scale=dict(loaded, w=p["weight"]),
    )


def exponential(d):
    n, m = d.size(4, 6), d.size(3, 5)
    p = {"A_log": d.normal(n, m)}
    return Case(
        p,
        lambda g, t: (g.x(2, n, m) * -(t["A_log"].exp())).exp(),
        {"A": -torch.exp(p["A_log"])},
        lambda g, t: (g.x(2, n, m) * t["A"]).exp(),
        no_sign={"A": torch.exp(p["A_log"])},
        no_exponential={"A": -p["A_log"]},
    )


def one_plus(d):
    n = d.size(6, 8, 12)
    p = {"weight": d.normal(n)}
    return Case(
        p,
        lambda g, t: rms(g.x(5, n)) * (t["weight"] + 1.0),
        {"w": 1 + p["weight"]},
        lambda g, t: rms(g.x(5, n)) * t["w"],
        twice={"w": 2 + p["weight"]},
        forgotten={"w": p["weight"]},
    )


def int8(d):
    out, inner, late = d.size(6, 8), d.size(6, 8), d.size(True, False)
    p = {"qweight": d.int8(out, inner), "scales": d.positive(out, 1) / 100}

    def run(g, t):
        w, x = t["qweight"].to(dsl.f32), g.x(5, inner)
        if late:
            return x.linear(w) * t["scales"].reshape(out)
        return x.linear(w * t["scales"])

    q, s = p["qweight"].float(), p["scales"]
    return Case(
        p,
        run,
        {"w": q * s},
        lambda g, t: g.x(5, inner).linear(t["w"]),
        transposed={"w": q * s.roll(1, 0)},
        zero_point={"w": (q - 1) * s},
        twice={"w": q * s * s},
    )


def softmax_of(q, k):
    return q.matmul(k.transpose(0, 1)).softmax(-1)


def q_scale(d):
    n, m = d.size(6, 8), d.size(5, 12)
    scale = m**-0.5
    p = {"wq": d.normal(m, n), "bq": d.normal(m), "wk": d.normal(m, n)}

    def run(g, t):
        x = g.x(5, n)
        q, k = x.linear(t["wq"], t["bq"]), x.linear(t["wk"])
        return (q.matmul(k.transpose(0, 1)) * scale).softmax(-1)

    def folded(g, t):
        x = g.x(5, n)
        return softmax_of(x.linear(t["q"], t["b"]), x.linear(t["wk"]))

    loaded = {"q": p["wq"] * scale, "b": p["bq"] * scale, "wk": p["wk"]}
    return Case(
        p,
        run,
        loaded,
        folded,
        twice={"q": p["wq"] * scale**2, "b": p["bq"] * scale**2},
        no_bias={"b": p["bq"]},
        other_size={"q": p["wq"] * n**-0.5, "b": p["bq"] * n**-0.5} if n != m else {"q": p["wq"]},
    )


def qkv(d):
    n, m = d.size(6, 8), d.size(4, 6)
    p = {}
    for name in "qkv":
        p[name + ".weight"], p[name + ".bias"] = d.normal(m, n), d.normal(m)

    def run(g, t):
        x = g.x(5, n)
        q, k, v = (x.linear(t[c + ".weight"], t[c + ".bias"]) for c in "qkv")
        return softmax_of(q, k).matmul(v)

    def folded(g, t):
        q, k, v = g.x(5, n).linear(t["weight"], t["bias"]).split(m, -1)
        return softmax_of(q, k).matmul(v)

    def load(order, bias="qkv"):
        return {
            "weight": torch.cat([p[c + ".weight"] for c in order]),
            "bias": torch.cat([p[c + ".bias"] for c in bias]),
        }

    return Case(
        p, run, load("qkv"), folded, exchanged=load("kqv", "kqv"), bias_order=load("qkv", "vkq")
    )


def outlier(d):
    """One element is so large that the others are nothing beside it, and are not excused by it. A
    line says how the parameter was made, and is refused where it was not."""
    n, scale = d.size(6, 8, 12), d.size(0.37, 0.125, 1.7)
    p = {"weight": d.normal(n)}
    at = d.rng.randrange(n)
    p["weight"][at] = d.size(1e6, 1e9, -1e12)
    others = torch.arange(n) != at
    w = p["weight"] * scale
    case = Case(
        p,
        lambda g, t: (g.x(5, n) * (t["weight"] * scale)).tanh(),
        {"w": w},
        lambda g, t: (g.x(5, n) * t["w"]).tanh(),
        others_scaled={"w": torch.where(others, w * 1.01, w)},
        others_forgotten={"w": torch.where(others, p["weight"], w)},
        one_shifted={"w": w + 1e-3 * (torch.arange(n) == (at + 1) % n)},
    )
    case.said = "mul(weight, %r)" % scale, "w"
    return case


def few_digits(d):
    """A weight in few digits, rounded once or at each step, its number in these digits or not.
    Where the number or the scale is another the elements are off by little, and all alike."""
    n, m, dtype = d.size(24, 32), d.size(24, 40), d.size(torch.bfloat16, torch.float16)
    unit, number = torch.finfo(dtype).eps / 2, d.size(0.37, 0.125, 1.7, 96**-0.5)
    p = {"weight": d.normal(n, m).to(dtype), "scale": d.positive(m).to(dtype)}
    exact = p["weight"].double() * p["scale"].double()
    once = (exact * number).to(dtype)
    factor = d.size(number, torch.tensor(number, dtype=dtype))
    w = d.size(once, p["weight"] * p["scale"] * factor)
    off = 1 + d.size(-3, -1.5, 1.5, 3) * unit
    one = torch.zeros(n * m, dtype=torch.bool)
    one[int(exact.abs().argmax())] = True
    outside = w.double() * (1 + 24 * unit * one.reshape(n, m))

    def run(g, t):
        return g.x(5, m).linear((t["weight"].to(dsl.f32) * t["scale"].to(dsl.f32)) * number)

    case = Case(
        p,
        run,
        {"w": w},
        lambda g, t: g.x(5, m).linear(t["w"].to(dsl.f32)),
        other_number={"w": (exact * number * off).to(dtype)},
        one_element={"w": outside.to(dtype)},
    )
    case.said, case.rounds = ("mul(mul(weight, scale), %r)" % number, "w"), 4 * unit
    return case


def widened(t):
    """Parameters of few digits as a graph computes with them."""
    return {k: v.to(dsl.f32) for k, v in t.items()}


def narrow_adapter(d):
    """An adapter merged into a weight of few digits. A factor that is off by little hides in every
    element, and not in all of them."""
    out, inner, rank = d.size(16, 24), d.size(16, 32), d.size(2, 4)
    dtype, scale = d.size(torch.bfloat16, torch.float16), d.size(0.5, 2.0, 16 / 3)
    p = {"weight": d.normal(out, inner), "lora_A": d.normal(rank, inner)}
    p["lora_B"] = d.normal(out, rank)
    p = {k: v.to(dtype) for k, v in p.items()}
    by = torch.finfo(dtype).eps * d.size(-1, 1)

    def run(g, t):
        x, t = g.x(5, inner), widened(t)
        return x.linear(t["weight"]) + x.linear(t["lora_A"]).linear(t["lora_B"]) * scale

    def load(s):
        w, a, b = (p[k].double() for k in ("weight", "lora_A", "lora_B"))
        return {"w": (w + b @ a * s).to(dtype)}

    case = Case(
        p,
        run,
        load(scale),
        lambda g, t: g.x(5, inner).linear(t["w"].to(dsl.f32)),
        other_number=load(scale * (1 + 3 * by)),
        # a loader may round its number, and then has another one
        near_number=load((scale if scale < 3 else 4.0) * (1 + d.size(0.7, 1.3) * by)),
    )
    case.near = {"near_number"}
    case.rounds = 4 * torch.finfo(dtype).eps
    return case


def narrow_scale(d):
    """A number in a weight of few digits, and one beside it."""
    n, m, dtype = d.size(16, 24), d.size(24, 40), d.size(torch.bfloat16, torch.float16)
    number = d.size(0.125, 0.37, 96**-0.5, 1.7)
    p = {"weight": d.normal(n, m).to(dtype)}
    by = torch.finfo(dtype).eps * d.size(-1, 1)

    def load(s):
        return {"w": (p["weight"].double() * s).to(dtype)}

    case = Case(
        p,
        lambda g, t: g.x(5, m).linear(t["weight"].to(dsl.f32) * number),
        load(number),
        lambda g, t: g.x(5, m).linear(t["w"].to(dsl.f32)),
        other_number=load(number * (1 + by)),
        near_number=load((number if number == 0.125 else 0.5) * (1 + 0.4 * by)),
    )
    case.near = {"near_number"}
    case.rounds = 4 * torch.finfo(dtype).eps
    return case


def rotary(d):
    n, half = d.size(6, 8), d.size(2, 3, 4)
    angle = torch.arange(5.0)[:, None] * 0.3 ** torch.arange(float(half))
    p = {"wq": d.normal(2 * half, n), "wk": d.normal(2 * half, n)}
    cos, sin = (
        dsl.Data((5, half), t.reshape(-1).tolist()) for t in (torch.cos(angle), torch.sin(angle))
    )

    def tables(g):
        return g.const("cos", cos), g.const("sin", sin)

    def pairs(g, y):
        c, s = tables(g)
        y = y.reshape(5, half, 2)
        a, b = y.select(2, 0), y.select(2, 1)
        return g.stack([a * c - b * s, a * s + b * c], -1).reshape(5, 2 * half)

    def halves(g, y):
        c, s = tables(g)
        a, b = y.split(half, -1)
        return g.cat([a * c - b * s, a * s + b * c], -1)

    def graph(turn):
        return lambda g, t: turn(g, g.x(5, n).linear(t["wq"])).matmul(
            turn(g, g.x(5, n).linear(t["wk"])).t()
        )

    order = [*range(0, 2 * half, 2), *range(1, 2 * half, 2)]
    loaded = {k: v[order] for k, v in p.items()}
    return Case(
        p,
        graph(pairs),
        loaded,
        graph(halves),
        one_only={"wk": p["wk"]},
        backwards={"wq": p["wq"][order[::-1]]},
    )


KINDS = [
    batch_norm,
    adapter,
    weight_norm,
    norm_scale,
    layer_norm,
    exponential,
    one_plus,
    int8,
    q_scale,
    qkv,
    rotary,
    outlier,
    few_digits,
    narrow_adapter,
    narrow_scale,
]


# ---- running ----


def output(build, tensors):
    g = dsl.Graph()
    y = build(g, leaves(g, tensors))
    run = truth.Run(g)
    run.all()
    return run.at[y.ref]


def tell(case):
    """That the true twin agrees on the captured values, and a faulty one does not."""
    want = output(case.run, case.trained)
    at = output(case.folded, case.loaded)
    assert (want - at).abs().max() <= case.rounds * want.abs().max()
    for name, tensors in case.faults.items():
        off = (want - output(case.folded, tensors)).abs().max() / want.abs().max()
        assert off > 1e-5, "%s: %g" % (name, off)


def verdict(isomer, folder, left, right, *options):
    dsl.Pair("", "", "", left, right).write(folder)
    sides = [os.path.join(folder, "left"), os.path.join(folder, "right")]
    p = subprocess.run([isomer, "compare", *sides, *options], capture_output=True, text=True)
    return VERDICT.get(p.returncode, dsl.ERROR + p.stderr)


def checked(isomer, folder, *options):
    """Whether the certificate that was written holds."""
    sides = [os.path.join(folder, "left"), os.path.join(folder, "right")]
    certificate = os.path.join(folder, "certificate.json")
    p = subprocess.run(
        [isomer, "check", certificate, *sides, *options], capture_output=True, text=True
    )
    return p.returncode == 0


def attempt(o, case, exchange):
    """Returns the failures, a line each, and how many comparisons were made."""

    def graph(build, tensors):
        return lambda g: build(g, leaves(g, tensors))

    left = graph(case.run, case.trained)
    wrong = []
    for name, tensors in [("", case.loaded), *case.faults.items()]:
        sides = [left, graph(case.folded, tensors)]
        with tempfile.TemporaryDirectory() as folder:
            options = ["--at-these-weights"] if o.at_these_weights else []
            said = []
            if case.said:
                said = ["--relations", os.path.join(folder, "said")]
                with open(said[1], "w") as f:
                    print("leaf %s = %s" % (case.said[::-1] if exchange else case.said), file=f)
            certified = not name and o.certificates
            if certified:
                options += ["--certificate", os.path.join(folder, "certificate.json")]
            got = verdict(o.isomer, folder, *(sides[::-1] if exchange else sides), *options, *said)
            if name and case.said:
                if "rounding explains" not in got:
                    wrong.append("%s: %s" % (name, got))
            elif got == dsl.UNDECIDED and name in case.near:
                pass
            elif got != (dsl.DIFFERENT if name else dsl.EQUIVALENT):
                wrong.append("%s: %s" % (name or "the true twin", got))
            elif certified and not checked(o.isomer, folder, *said):
                wrong.append("the certificate does not hold")
    return wrong, 1 + len(case.faults)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--certificates", action="store_true")
    parser.add_argument("--at-these-weights", action="store_true")
    o = parser.parse_args()
    passed = failed = 0
    kinds = [k for k in KINDS if o.only in k.__name__]
    for i in range(o.count):
        kind = kinds[i % len(kinds)]
        case = kind(Draw("%d %d" % (o.seed, i)))
        tell(case)
        wrong, n = attempt(o, case, i // len(kinds) % 2)
        for line in wrong:
            print("FAILED %s %d: %s" % (kind.__name__, i, line), flush=True)
        passed += n - len(wrong)
        failed += len(wrong)
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0 or not passed


if __name__ == "__main__":
    sys.exit(main())
