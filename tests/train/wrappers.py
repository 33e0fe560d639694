"""What users do to a step besides: shards with uneven rows, communication hooks, fused kernels of
optimizers, few labels on each rank; for isomer-capture train. With one rank each is the step on one
device."""

import functools

import torch
import torch.distributed as dist
import torch.nn.functional as F
from optimizers import replicated, sharded
from plans import rows
from torch import nn, optim
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

WIDTH, HIDDEN, CLASSES, BATCH = 8, 7, 5, 24


class Words(nn.Module):
    """No number of rows divides by two, three and four, and the norm has fewer on the last rank."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(CLASSES, WIDTH)
        self.up = nn.Linear(WIDTH, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, CLASSES)

    def forward(self, x):
        return self.head(self.norm(torch.tanh(self.up(self.embed(x)))))


def train(run, make, wrap, clip=None, batch=BATCH, spoil=None, parts=1):
    model = Words()
    if run.world > 1:
        model = wrap(model, run)
    optimizer = make(model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        for a, b in zip(x.chunk(parts), y.chunk(parts)):
            (F.cross_entropy(model(a), b) / parts).backward()
        if spoil:
            spoil(model, run)
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()

    made = torch.Generator().manual_seed(1)
    x, y = torch.randint(0, CLASSES, (2, batch), generator=made)
    domain = {"range": [0, CLASSES - 1]}
    inputs = {"x": rows(run, x), "y": rows(run, y)}
    run.step(step, model, optimizer, inputs=inputs, domains=dict.fromkeys(inputs, domain))


adam = functools.partial(optim.AdamW, lr=0.01)
plain = functools.partial(train, make=adam, wrap=replicated)
uneven = functools.partial(train, make=adam, wrap=sharded)
uneven_clipped = functools.partial(train, make=adam, wrap=sharded, clip=0.1)
uneven_accumulated = functools.partial(train, make=adam, wrap=sharded, parts=2)
# Two labels on each rank, which stand elsewhere in the batch, too.
few = functools.partial(train, make=adam, wrap=replicated, batch=8)


def doubled(model, run):
    """A fault: one rank's rows of a gradient count twice."""
    if run.world > 1 and run.rank == 1:
        model.up.weight.grad.to_local().mul_(2)


uneven_doubled = functools.partial(train, make=adam, wrap=sharded, spoil=doubled)

# Communication hooks.


def hooked(hook):
    def wrap(model, run):
        model = replicated(model, run)
        model.register_comm_hook(None, hook)
        return model

    return functools.partial(train, make=adam, wrap=wrap)


def narrow(state, bucket):
    """Gradients are sent as bfloat16."""
    sent = bucket.buffer().to(torch.bfloat16).div_(dist.get_world_size())

    def widen(future):
        return bucket.buffer().copy_(future.value()[0])

    return dist.all_reduce(sent, async_op=True).get_future().then(widen)


def summed(state, bucket):
    """A fault: nobody divides by the number of ranks."""
    sent = dist.all_reduce(bucket.buffer(), async_op=True)
    return sent.get_future().then(lambda future: future.value()[0])


hook = hooked(default_hooks.allreduce_hook)
hook_half = hooked(default_hooks.fp16_compress_hook)
hook_narrow = hooked(narrow)
hook_summed = hooked(summed)

# Fused kernels, on the ranks only.
FUSED = {
    "adam": functools.partial(optim.Adam, lr=0.01, weight_decay=0.1),
    "adamw": functools.partial(optim.AdamW, lr=0.01, amsgrad=True),
    "momentum": functools.partial(optim.SGD, lr=0.1, momentum=0.9, maximize=True, dampening=0.1),
    "adagrad": functools.partial(optim.Adagrad, lr=0.01),
}


def fused(run, make, other=None):
    """`other`: what the fused optimizer has that the one on one device has not."""
    alone = make if run.world == 1 else functools.partial(make, fused=True, **(other or {}))
    return train(run, alone, replicated)


for _name, _make in FUSED.items():
    globals()["fused_" + _name] = functools.partial(fused, make=_make)
fused_decayed = functools.partial(fused, make=FUSED["adamw"], other={"weight_decay": 0.3})
lists = functools.partial(train, make=functools.partial(FUSED["adam"], foreach=True), wrap=sharded)


def read(run, sums=True):
    """Clipped by a norm that is read as a number; the fault: each rank has a norm of its own."""

    def clip(model, run):
        square = sum(p.grad.pow(2).sum() for p in model.parameters())
        if run.world > 1 and not sums:
            square = square * (run.rank + 1)
        scale = 0.1 / (square.item() ** 0.5 + 1e-6)
        if scale < 1.0:
            for p in model.parameters():
                p.grad.mul_(scale)

    return train(run, adam, replicated, spoil=clip)


read_wrong = functools.partial(read, sums=False)
adafactor = functools.partial(
    train, make=functools.partial(optim.Adafactor, lr=0.01), wrap=replicated
)
