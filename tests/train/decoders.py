"""Training steps of decoders with attention, for isomer-capture train: Llama-like (RMSNorm, rotary
positions, grouped heads, SwiGLU), GPT-like (LayerNorm, learned positions, the head tied to the
embedding) and routed (the feed-forward layer is two of four experts). With one rank each is the
step on one device."""

import functools

import torch
import torch.nn.functional as F
from plans import adam, rows, train, whole
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.parallel import DistributedDataParallel

WIDTH, HEADS, GROUPS, VOCABULARY, LENGTH = 16, 4, 4, 16, 4
HEAD = WIDTH // HEADS


class RMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def rotated(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), -1)


def rotary(length):
    angle = 1.0 / 100.0 ** (torch.arange(0, HEAD, 2).float() / HEAD)
    angle = torch.outer(torch.arange(length).float(), angle)
    angle = torch.cat((angle, angle), -1)
    return angle.cos(), angle.sin()


class Attention(nn.Module):
    def __init__(self, turn, groups=HEADS, bias=False):
        super().__init__()
        self.turn = turn
        self.q = nn.Linear(WIDTH, HEADS * HEAD, bias)
        self.k = nn.Linear(WIDTH, groups * HEAD, bias)
        self.v = nn.Linear(WIDTH, groups * HEAD, bias)
        self.o = nn.Linear(HEADS * HEAD, WIDTH, bias)

    def forward(self, x):
        n, length, _ = x.shape
        q, k, v = (f(x).view(n, length, -1, HEAD).transpose(1, 2) for f in (self.q, self.k, self.v))
        if self.turn:
            cos, sin = rotary(length)
            q, k = q * cos + rotated(q) * sin, k * cos + rotated(k) * sin
        if k.shape[1] < q.shape[1]:
            k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
        with sdpa_kernel(SDPBackend.MATH):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).reshape(n, length, -1))


class Gated(nn.Module):
    def __init__(self, width=2 * WIDTH):
        super().__init__()
        self.gate = nn.Linear(WIDTH, width, False)
        self.up = nn.Linear(WIDTH, width, False)
        self.down = nn.Linear(width, WIDTH, False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Feed(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh"))


class Routed(nn.Module):
    """The two likeliest of four experts, each weighed by the router."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(WIDTH, 4, False)
        self.experts = nn.ModuleList(Gated(WIDTH) for _ in range(4))

    def forward(self, x):
        weight, chosen = torch.topk(F.softmax(self.router(x), -1), 2, -1)
        weight = weight / weight.sum(-1, keepdim=True)
        gates = torch.zeros(*x.shape[:-1], 4).scatter(-1, chosen, weight)
        return sum(f(x) * gates[..., k : k + 1] for k, f in enumerate(self.experts))


class Block(nn.Module):
    def __init__(self, norm, attention, feed):
        super().__init__()
        self.norm, self.attention = norm(), attention()
        self.feed_norm, self.feed = norm(), feed()

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.feed(self.feed_norm(x))


class Decoder(nn.Module):
    def __init__(self, block, norm, layers=2, positions=False, tied=False):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH) if positions else None
        self.layers = nn.ModuleList(block() for _ in range(layers))
        self.norm = norm()
        self.head = nn.Linear(WIDTH, VOCABULARY, False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, ids):
        x = self.embed(ids)
        if self.positions is not None:
            x = x + self.positions(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def llama(layers=2):
    attention = functools.partial(Attention, True, HEADS // 2)
    return Decoder(functools.partial(Block, RMSNorm, attention, Gated), RMSNorm, layers)


def gpt(layers=2):
    norm = functools.partial(nn.LayerNorm, WIDTH)
    attention = functools.partial(Attention, False, HEADS, True)
    block = functools.partial(Block, norm, attention, Feed)
    return Decoder(block, norm, layers, positions=True, tied=True)


def routed(layers=1):
    attention = functools.partial(Attention, True)
    return Decoder(functools.partial(Block, RMSNorm, attention, Routed), RMSNorm, layers)


MODELS = {"llama": llama, "gpt": gpt, "routed": routed}


# Plans


def data(run, make, **more):
    model = make()
    if run.world > 1:
        model = DistributedDataParallel(model)
    train(run, model, adam(model), average=True, **more)


def sharded(run, make, **more):
    model = make()
    if run.world > 1:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (run.world,))
        for layer in model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    train(run, model, adam(model), average=True, **more)


def zero(run, make, **more):
    model = make()
    optimizer = adam(model)
    if run.world > 1:
        from torch.distributed.optim import ZeroRedundancyOptimizer

        model = DistributedDataParallel(model)
        optimizer = ZeroRedundancyOptimizer(
            model.parameters(), torch.optim.AdamW, lr=1e-2, foreach=False
        )
    train(run, model, optimizer, average=True, **more)


def columns_and_rows(sequence=False):
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        PrepareModuleInput,
        RowwiseParallel,
        SequenceParallel,
    )

    plan = {"attention." + n: ColwiseParallel() for n in "qkv"}
    plan.update({"feed." + n: ColwiseParallel() for n in ("gate", "up")})
    out = {"output_layouts": Shard(1)} if sequence else {}
    plan.update({n: RowwiseParallel(**out) for n in ("attention.o", "feed.down")})
    if sequence:
        gather = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
        plan.update({"attention": gather, "feed": gather})
        plan.update({n: SequenceParallel() for n in ("norm", "feed_norm")})
    return plan


def tensor(run, make, sequence=False, **more):
    model = make()
    if run.world > 1:
        from torch.distributed.device_mesh import init_device_mesh

        split(model, init_device_mesh("cpu", (run.world,)), sequence)
    train(run, model, adam(model), cut=whole, **more)


def split(model, mesh, sequence=False):
    """Each layer's linears over the ranks of a mesh."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        SequenceParallel,
        parallelize_module,
    )

    plan = columns_and_rows(sequence)
    for layer in layers_of(model):
        here = {n: p for n, p in plan.items() if has(layer, n)}
        parallelize_module(layer, mesh, here, src_data_rank=None)
    if sequence:
        ends = {
            "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
            "norm": SequenceParallel(),
            "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
        }
        parallelize_module(model, mesh, ends, src_data_rank=None)


def layers_of(model):
    held = model.layers
    return held.values() if isinstance(held, nn.ModuleDict) else held


def has(module, name):
    try:
        return module.get_submodule(name) is not None
    except AttributeError:
        return False


def sequence(run, make, **more):
    tensor(run, make, sequence=True, **more)


def mixed(run, make, sequence=False, many=False, **more):
    """Shards over two groups of the ranks, columns and rows within them; many: groups of two."""
    model = make()
    cut = whole
    if run.world > 1:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        groups = run.world // 2 if many else 2
        shape = (groups, run.world // groups)
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=("data", "tensor"))
        split(model, mesh["tensor"], sequence)
        for layer in model.layers:
            fully_shard(layer, mesh=mesh["data"])
        fully_shard(model, mesh=mesh["data"])
        mine = mesh.get_local_rank("data")

        def cut(run, t):
            return t.chunk(groups)[mine].clone()

    train(run, model, adam(model), cut=cut, average=True, **more)


def mixed_sequence(run, make, **more):
    mixed(run, make, sequence=True, **more)


def mixed_many(run, make, **more):
    mixed(run, make, many=True, **more)


PLANS = {
    "mixed": mixed,
    "mixed_many": mixed_many,
    "mixed_sequence": mixed_sequence,
    "data": data,
    "sharded": sharded,
    "zero": zero,
    "tensor": tensor,
    "sequence": sequence,
}

VARIANTS = {
    "": {},
    "_clipped": {"clip": 0.1},
    "_accumulated": {"parts": 2},
    "_accumulated_clipped": {"parts": 2, "clip": 0.1},
}

for name, make in MODELS.items():
    for called, plan in PLANS.items():
        for ending, more in VARIANTS.items():
            globals()[name + "_" + called + ending] = functools.partial(plan, make=make, **more)
