#!/usr/bin/env python3
"""Optimisations that people make while a model is loaded, written in plain PyTorch and compared as
a user compares them: `isomer.compare(trained, loaded, inputs)`.

    tests/capture_py/folded.py [--only TEXT] [--isomer build/isomer] [-v]

Each must be `equivalent`, whichever side it is on; its faulty twin, which has one slip of such
code, `different`. What needs a library that is not there (PEFT, torchao) is left out. The last line
is `N passed, N failed`."""

import argparse
import copy
import os
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Block(nn.Module):
    """A decoder's layer, small, with whatever norm, projections and MLP it is given."""

    def __init__(self, norm, qkv, out, mlp_norm, mlp, heads=4):
        super().__init__()
        self.norm, self.qkv, self.out, self.mlp_norm, self.mlp = norm, qkv, out, mlp_norm, mlp
        self.heads = heads

    def forward(self, x):
        b, t, n = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm(x)))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, n))
        return x + self.mlp(self.mlp_norm(x))


class RMSNorm(nn.Module):
    def __init__(self, n, offset=0.0, eps=1e-6):
        super().__init__()
        self.weight, self.offset, self.eps = nn.Parameter(torch.ones(n)), offset, eps

    def forward(self, x):
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return y * (self.offset + self.weight)


class Unscaled(nn.Module):
    def __init__(self, eps=1e-6):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


class Separate(nn.Module):
    """Three projections."""

    def __init__(self, n, kv=None):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(n, n), nn.Linear(n, kv or n), nn.Linear(n, kv or n)

    def forward(self, x):
        return self.q(x), self.k(x), self.v(x)


class Fused(nn.Module):
    def __init__(self, separate, order="qkv"):
        super().__init__()
        parts = [getattr(separate, c) for c in order]
        self.sizes = [p.out_features for p in parts]
        self.proj = nn.Linear(parts[0].in_features, sum(self.sizes))
        with torch.no_grad():
            self.proj.weight.copy_(torch.cat([p.weight for p in parts]))
            self.proj.bias.copy_(torch.cat([p.bias for p in parts]))

    def forward(self, x):
        return self.proj(x).split(self.sizes, -1)


class Mlp(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.gate, self.up, self.down = (
            nn.Linear(n, m, bias=False),
            nn.Linear(n, m, bias=False),
            nn.Linear(m, n, bias=False),
        )

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def scattered(module, seed=0):
    """Parameters as training leaves them: no ones and zeros."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            noise = torch.randn(p.shape, generator=generator)
            p.copy_(noise * p.shape[-1] ** -0.5 if p.dim() > 1 else p + 0.2 * noise)
        for name, b in module.named_buffers():
            if name.endswith("running_mean"):
                b.copy_(0.3 * torch.randn(b.shape, generator=generator))
            elif name.endswith("running_var"):
                b.copy_(0.5 + torch.rand(b.shape, generator=generator))
    return module.eval()


def block(offset=0.0, mlp=None, qkv=None):
    n = 32
    return Block(
        RMSNorm(n, offset),
        qkv or Separate(n),
        nn.Linear(n, n),
        RMSNorm(n, offset),
        mlp or Mlp(n, 48),
    )


X = torch.randn(2, 7, 32, generator=torch.Generator().manual_seed(1))


# ---- what people do: each gives (trained, loaded, faulty, inputs) ----


def batch_norm():
    """torch.nn.utils.fusion, over a residual block of convolutions."""
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.c1, self.b1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
            self.c2, self.b2 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
            self.down, self.bd = nn.Conv2d(3, 8, 1, bias=False), nn.BatchNorm2d(8)
            self.head = nn.Linear(8, 5)

        def forward(self, x):
            y = self.b2(self.c2(F.relu(self.b1(self.c1(x)))))
            return self.head(F.relu(y + self.bd(self.down(x))).mean((2, 3)))

    def fused(net, eps=None):
        net = copy.deepcopy(net)
        for c, b in (("c1", "b1"), ("c2", "b2"), ("down", "bd")):
            bn = getattr(net, b)
            bn.eps = eps or bn.eps
            setattr(net, c, fuse_conv_bn_eval(getattr(net, c), bn))
            setattr(net, b, nn.Identity())
        return net.eval()

    net = scattered(Net())
    return net, fused(net), fused(net, 1e-3), torch.randn(2, 3, 9, 9)


class Adapted(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base, self.scaling = base, alpha / rank
        self.lora_A = nn.Linear(base.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.lora_B(self.lora_A(x)) * self.scaling

    def merged(self, times=1):
        out = copy.deepcopy(self.base)
        with torch.no_grad():
            out.weight += times * self.scaling * (self.lora_B.weight @ self.lora_A.weight)
        return out


def lora():
    """Adapters on the query and on the value projection, merged."""
    net = block()
    for c in "qv":
        setattr(net.qkv, c, Adapted(getattr(net.qkv, c)))
    net = scattered(net)

    def load(times):
        out = copy.deepcopy(net)
        for c in "qv":
            setattr(out.qkv, c, getattr(out.qkv, c).merged(times))
        return out.eval()

    return net, load(1), load(2), X


def peft_lora():
    """The same by PEFT: merge_and_unload."""
    import peft

    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["q", "v"])
    net = scattered(peft.get_peft_model(block(), config))
    merged = copy.deepcopy(net).merge_and_unload().eval()
    return net, merged, copy.deepcopy(net).unload().eval(), X


def parametrized(make, norm, *names):
    """A module whose weights are parametrized, and the same with that removed, as it should be and
    with the weight as it was before."""
    from torch.nn.utils import parametrize

    def one():
        net = make()
        for k in names:
            norm(net[k])
        return scattered(net)

    def plain(faulty):
        net = one()
        for k in names:
            given = net[k].parametrizations.weight
            v = getattr(given, "original1", None)
            v = (given.original if v is None else v).detach().clone()
            parametrize.remove_parametrizations(net[k], "weight")
            if faulty:
                net[k].weight = nn.Parameter(v)
        return net.eval()

    return one(), plain(False), plain(True)


def weight_norm():
    """torch's parametrization, removed."""
    from torch.nn.utils.parametrizations import weight_norm

    def make():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv1d(4, 8, 3, padding=1), nn.ELU(), nn.Conv1d(8, 8, 5, padding=2), nn.Tanh()
        )

    return (*parametrized(make, weight_norm, 0, 2), torch.randn(2, 4, 11))


def norm_scale():
    """RMSNorm's weight into the projections behind it."""
    net = scattered(block())

    def load(faulty=False):
        out = copy.deepcopy(net)
        with torch.no_grad():
            for c in "qkv":
                getattr(out.qkv, c).weight *= net.norm.weight
            for name in ("gate", "up"):
                if not (faulty and name == "up"):
                    getattr(out.mlp, name).weight *= net.mlp_norm.weight
        out.norm, out.mlp_norm = Unscaled(), Unscaled()
        return out.eval()

    return net, load(), load(True), X


def layer_norm_scale():
    """LayerNorm's weight and bias into the linear behind it."""
    net = scattered(
        nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 24), nn.GELU(), nn.Linear(24, 16))
    )

    def load(bias=True):
        out = copy.deepcopy(net)
        with torch.no_grad():
            if bias:
                out[1].bias += out[1].weight @ net[0].bias
            out[1].weight *= net[0].weight
        out[0] = nn.LayerNorm(16, elementwise_affine=False)
        return out.eval()

    return net, load(), load(False), torch.randn(5, 16)


class Scan(nn.Module):
    """A selective state space of a few steps, as Mamba's slow path."""

    def __init__(self, A, n=6, state=4):
        super().__init__()
        self.A_log, self.A, self.D = (None, A, nn.Parameter(torch.ones(n)))
        if A is None:
            self.A_log = nn.Parameter(torch.log(torch.arange(1.0, state + 1)).repeat(n, 1))
        self.proj, self.dt = nn.Linear(n, 2 * state), nn.Linear(n, n)

    def forward(self, x):
        A = -torch.exp(self.A_log.float()) if self.A is None else self.A
        dt = F.softplus(self.dt(x))
        B, C = self.proj(x).chunk(2, -1)
        h, out = torch.zeros(x.shape[0], x.shape[2], A.shape[1]), []
        for t in range(x.shape[1]):
            h = (
                torch.exp(dt[:, t, :, None] * A) * h
                + dt[:, t, :, None] * B[:, t, None] * x[:, t, :, None]
            )
            out.append((h * C[:, t, None]).sum(-1) + self.D * x[:, t])
        return torch.stack(out, 1)


def state_space():
    """-exp(A_log) made once."""
    net = scattered(Scan(None))

    def load(A):
        out = Scan(nn.Parameter(A))
        out.load_state_dict(
            {k: v for k, v in net.state_dict().items() if k != "A_log"}, strict=False
        )
        return out.eval()

    A = -torch.exp(net.A_log.detach())
    return net, load(A), load(-A), torch.randn(2, 4, 6)


def one_plus():
    """Gemma's 1 + weight, stored."""
    net = scattered(block(1.0))

    def load(by):
        out = copy.deepcopy(net)
        for norm in (out.norm, out.mlp_norm):
            norm.offset = 0.0
            norm.weight = nn.Parameter(norm.weight.detach() + by)
        return out.eval()

    return net, load(1.0), load(0.0), X


class Int8Linear(nn.Module):
    """Weights of eight bits with a scale for each group of columns."""

    def __init__(self, linear, group=8, symmetric=True):
        super().__init__()
        w = linear.weight.detach()
        g = w.reshape(w.shape[0], -1, group)
        low, high = g.amin(-1, keepdim=True), g.amax(-1, keepdim=True)
        if symmetric:
            scale, zero = torch.maximum(high, -low) / 127, torch.zeros_like(low)
        else:
            scale = (high - low) / 255
            zero = (-128 - low / scale).round()
        q = (g / scale + zero).round().clamp(-128, 127)
        self.register_buffer("qweight", q.reshape(w.shape).to(torch.int8))
        self.register_buffer("scales", scale.squeeze(-1))
        self.register_buffer("zeros", zero.squeeze(-1).to(torch.int8))
        self.group, self.bias = group, linear.bias

    def weight(self):
        g = self.qweight.reshape(self.qweight.shape[0], -1, self.group).to(torch.float32)
        w = (g - self.zeros.to(torch.float32).unsqueeze(-1)) * self.scales.unsqueeze(-1)
        return w.reshape(self.qweight.shape)

    def forward(self, x):
        return F.linear(x, self.weight(), self.bias)

    def plain(self, faulty=False):
        out = nn.Linear(self.qweight.shape[1], self.qweight.shape[0], bias=self.bias is not None)
        w = self.weight()
        if faulty:
            g = self.qweight.reshape(w.shape[0], -1, self.group).to(torch.float32)
            w = (g * self.scales.roll(1, 1).unsqueeze(-1)).reshape(w.shape)
        out.weight = nn.Parameter(w)
        out.bias = self.bias
        return out


def dequantised(symmetric=True):
    """Weights of eight bits in groups, scaled back once."""
    net = scattered(block())
    for name in ("gate", "up", "down"):
        setattr(net.mlp, name, Int8Linear(getattr(net.mlp, name), symmetric=symmetric))

    def load(faulty):
        out = copy.deepcopy(net)
        for name in ("gate", "up", "down"):
            setattr(out.mlp, name, getattr(net.mlp, name).plain(faulty and name == "down"))
        return out.eval()

    return net, load(False), load(True), X


def dequantised_asymmetric():
    """The same with zero points."""
    return dequantised(False)


def fused_qkv():
    """Three projections as one."""
    net = scattered(block())

    def load(order):
        out = copy.deepcopy(net)
        out.qkv = Fused(net.qkv, order)
        return out.eval()

    return net, load("qkv"), load("qvk"), X


def fused_gate_up():
    """Gate and up as one projection."""

    class FusedMlp(nn.Module):
        def __init__(self, mlp, first, second):
            super().__init__()
            w = torch.cat([getattr(mlp, first).weight, getattr(mlp, second).weight]).detach()
            self.gate_up, self.down = nn.Linear(w.shape[1], w.shape[0], bias=False), mlp.down
            self.gate_up.weight = nn.Parameter(w)

        def forward(self, x):
            gate, up = self.gate_up(x).chunk(2, -1)
            return self.down(F.silu(gate) * up)

    net = scattered(block())

    def load(*order):
        out = copy.deepcopy(net)
        out.mlp = FusedMlp(net.mlp, *order)
        return out.eval()

    return net, load("gate", "up"), load("up", "gate"), X


def scaled_queries():
    """1 / sqrt(head) in the query's weights."""

    class Folded(nn.Module):
        def __init__(self, qkv):
            super().__init__()
            self.qkv = qkv

        def forward(self, x):
            q, k, v = (y.unflatten(-1, (4, -1)).transpose(1, 2) for y in self.qkv(x))
            return ((q @ k.transpose(-1, -2)).softmax(-1) @ v).transpose(1, 2).flatten(2)

    class Plain(nn.Module):
        def __init__(self, qkv):
            super().__init__()
            self.qkv = qkv

        def forward(self, x):
            q, k, v = (y.unflatten(-1, (4, -1)).transpose(1, 2) for y in self.qkv(x))
            return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)

    net = scattered(Plain(Separate(32)))

    def load(bias):
        out = Folded(copy.deepcopy(net.qkv))
        with torch.no_grad():
            out.qkv.q.weight *= 8**-0.5
            if bias:
                out.qkv.q.bias *= 8**-0.5
        return out.eval()

    return net, load(True), load(False), X


def torchao_int8():
    """torchao's int8 weights, scaled back."""
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    net = nn.Sequential(nn.Linear(32, 48), nn.SiLU(), nn.Linear(48, 32))
    net = scattered(net)
    quantize_(net, Int8WeightOnlyConfig())

    def load(faulty):
        out = nn.Sequential(nn.Linear(32, 48), nn.SiLU(), nn.Linear(48, 32))
        for k in (0, 2):
            w = net[k].weight.dequantize().detach()
            if faulty:
                w = w.clone()
                w[0] *= 1.05
            out[k].weight, out[k].bias = nn.Parameter(w), nn.Parameter(net[k].bias.detach())
        return out.eval()

    return net, load(False), load(True), X


KINDS = [
    batch_norm,
    lora,
    peft_lora,
    weight_norm,
    norm_scale,
    layer_norm_scale,
    state_space,
    one_plus,
    dequantised,
    dequantised_asymmetric,
    fused_qkv,
    fused_gate_up,
    scaled_queries,
    torchao_int8,
]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--only", default="")
    a.add_argument("-v", action="store_true")
    o = a.parse_args()
    os.environ["ISOMER"] = o.isomer
    sys.path.insert(0, os.path.join(ROOT, "capture"))
    import isomer

    passed = failed = 0
    for kind in KINDS:
        if o.only not in kind.__name__:
            continue
        torch.manual_seed(0)
        try:
            trained, loaded, faulty, inputs = kind()
        except ImportError as e:
            print("%s: left out: %s" % (kind.__name__, e))
            continue
        for name, side, want in (("", loaded, "equivalent"), (" faulty", faulty, "different")):
            for exchange in (False, True):
                began = time.process_time()
                both = (side, trained) if exchange else (trained, side)
                try:
                    r = isomer.compare(*both, (inputs,), timeout=120)
                    got, text = r.verdict, r.short()
                except isomer.Error as e:
                    got, text = "error", str(e)
                good = got == want
                passed, failed = passed + good, failed + (not good)
                print(
                    "%s%s%s%s: %s (%.1f s)"
                    % (
                        "" if good else "FAILED ",
                        kind.__name__,
                        name,
                        " exchanged" * exchange,
                        got,
                        time.process_time() - began,
                    ),
                    flush=True,
                )
                if o.v or not good:
                    print(text)
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0 or not passed


if __name__ == "__main__":
    sys.exit(main())
