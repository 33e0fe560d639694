"""Training steps of a classifier with ReLU by the optimizers of torch.optim, for isomer-capture
train: states of every kind, in shards and as replicas. With one rank each is the step on one
device."""

import functools

import torch
import torch.nn.functional as F
from plans import rows
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel

WIDTH, CLASSES, BATCH = 8, 6, 8


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, 12)
        self.norm = nn.LayerNorm(12)
        self.head = nn.Linear(12, CLASSES)

    def forward(self, x):
        return self.head(self.norm(F.relu(self.up(x))))


def sharded(model, run):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    return fully_shard(model, mesh=init_device_mesh("cpu", (run.world,)))


def replicated(model, run):
    return DistributedDataParallel(model)


def unreduced(model, run):
    """A fault: nobody adds the ranks' gradients."""
    return model


def train(run, make, wrap=replicated, schedule=None, clip=None):
    model = Classifier()
    if run.world > 1:
        model = wrap(model, run)
    optimizer = make(model.parameters())
    rate = schedule(optimizer) if schedule else None

    def step(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        if clip:
            nn.utils.clip_grad_value_(model.parameters(), clip)
        optimizer.step()
        if rate:
            rate.step()

    made = torch.Generator().manual_seed(1)
    x = torch.randn(BATCH, WIDTH, generator=made)
    y = torch.randint(0, CLASSES, (BATCH,), generator=made)
    inputs = {"x": rows(run, x), "y": rows(run, y)}
    domains = {"y": {"range": [0, CLASSES - 1]}}
    run.step(step, model, optimizer, inputs=inputs, domains=domains)


MADE = {
    "momentum": functools.partial(optim.SGD, lr=0.1, momentum=0.9, weight_decay=0.01),
    "nesterov": functools.partial(optim.SGD, lr=0.1, momentum=0.9, nesterov=True),
    "adam": functools.partial(optim.Adam, lr=0.01),
    "amsgrad": functools.partial(optim.AdamW, lr=0.01, amsgrad=True),
    "adamax": functools.partial(optim.Adamax, lr=0.01),
    "nadam": functools.partial(optim.NAdam, lr=0.01),
    "radam": functools.partial(optim.RAdam, lr=0.01),
    "rmsprop": functools.partial(optim.RMSprop, lr=0.01, momentum=0.9, centered=True),
    "adagrad": functools.partial(optim.Adagrad, lr=0.01),
    "adadelta": functools.partial(optim.Adadelta, lr=0.1),
    "averaged": functools.partial(optim.ASGD, lr=0.01),
}
for _name, _make in MADE.items():
    globals()[_name] = functools.partial(train, make=_make)
    globals()[_name + "_sharded"] = functools.partial(train, make=_make, wrap=sharded)
    globals()[_name + "_unreduced"] = functools.partial(train, make=_make, wrap=unreduced)
cosine = functools.partial(
    train, make=MADE["momentum"], schedule=lambda o: optim.lr_scheduler.CosineAnnealingLR(o, 10)
)
clipped = functools.partial(train, make=MADE["adam"], clip=0.01)
