"""Plans that keep tensors from step to step beside parameters and optimizer, which compare with the
step on one device: averages of the weights and momenta of one's own, whole on each rank or in
shards, named or not. The faulty ones keep something else."""

import functools

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH = 8


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x):
        return self.down(torch.tanh(self.up(x)))


def train(run, average=None, momentum=None, squares=None, cut=False, named=False, scratch=False):
    """average: of the weights, by that factor; momentum: of plain gradient descent by hand, and
    squares: by which it is divided, as Adam does. cut: a rank keeps a shard of each. scratch:
    memory whose contents no step uses."""
    model = Two()
    net = DistributedDataParallel(model) if run.world > 1 else model
    names, weights = zip(*model.named_parameters())

    def mine(t):
        return t.chunk(int(run.world))[run.rank] if cut else t

    kept = [mine(p.detach()).clone() for p in weights] if average else []
    momenta = [torch.zeros_like(mine(p)) for p in weights] if momentum else []
    second = [torch.zeros_like(mine(p)) for p in weights] if squares else []
    spare = [torch.ones_like(p) for p in weights] if scratch else []

    def descend():
        for i, p in enumerate(weights):
            change = mine(p.grad)
            if momentum:
                change = momenta[i].mul_(momentum).add_(change)
            if squares:
                g = mine(p.grad)
                change = change / second[i].mul_(squares).addcmul_(g, g, value=0.1).sqrt().add(1e-3)
            if scratch:
                spare[i].add_(p.grad)
            mine(p).sub_(change, alpha=0.1)
            if cut and run.world > 1:
                parts = [torch.empty_like(change) for _ in range(run.world)]
                torch.distributed.all_gather(parts, mine(p).contiguous())
                p.copy_(torch.cat(parts))
            if average:
                kept[i].lerp_(mine(p), average)

    def step(x):
        model.zero_grad()
        net(x).square().mean().backward()
        with torch.no_grad():
            descend()

    def part(name, values, held):
        kind, _, of = name.partition(".")
        whole = values(weights[names.index(of)].shape) if kind in ("average", "momentum") else None
        return values(held.shape) if whole is None else mine(whole)

    states = {"average." + n: t for n, t in zip(names, kept)}
    states.update(("momentum." + n, t) for n, t in zip(names, momenta))
    x = torch.randn(BATCH, 4, generator=torch.Generator().manual_seed(1))
    inputs = {"x": x.chunk(int(run.world))[run.rank].clone()}
    run.step(step, model, inputs=inputs, **({"states": states, "part": part} if named else {}))


plain = train
averaged = functools.partial(train, average=0.1)
averaged_shard = functools.partial(train, average=0.1, cut=True)
averaged_named = functools.partial(train, average=0.1, named=True)
averaged_named_shard = functools.partial(train, average=0.1, named=True, cut=True)
averaged_slower = functools.partial(train, average=0.05)
averaged_named_slower = functools.partial(train, average=0.05, named=True)
momentum = functools.partial(train, momentum=0.9)
momentum_shard = functools.partial(train, momentum=0.9, cut=True)
momentum_named = functools.partial(train, momentum=0.9, named=True)
momentum_named_shard = functools.partial(train, momentum=0.9, named=True, cut=True)
momentum_less = functools.partial(train, momentum=0.8)
adam = functools.partial(train, momentum=0.9, squares=0.9)
adam_shard = functools.partial(train, momentum=0.9, squares=0.9, cut=True)
adam_less = functools.partial(train, momentum=0.9, squares=0.8)
spare = functools.partial(train, scratch=True)
