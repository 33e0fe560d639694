"""Training steps of a small model by the plans of PyTorch's own wrappers, for isomer-capture
train: with one rank each is the step on one device."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH, LENGTH, WIDTH, VOCABULARY = 16, 4, 8, 16


class Feed(nn.Module):
    def __init__(self, width=WIDTH):
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.feed = Feed()

    def forward(self, x):
        return x + self.feed(self.norm(x))


class Net(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Block() for _ in range(layers))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def batch():
    made = torch.Generator().manual_seed(1)
    ids = torch.randint(0, VOCABULARY, (BATCH, LENGTH), generator=made)
    labels = torch.randint(0, VOCABULARY, (BATCH, LENGTH), generator=made)
    return ids, labels


def rows(run, t):
    n = t.shape[0] // run.world
    return t[run.rank * n : (run.rank + 1) * n].clone()


def loss_of(model, ids, labels):
    logits = model(ids)
    return F.cross_entropy(logits.reshape(-1, VOCABULARY), labels.reshape(-1))


def clip_together(parameters, limit):
    """By the norm of all gradients: where they do not lie on one mesh, by the root of the squares
    of each mesh's norm."""
    by_mesh = {}
    for p in parameters:
        by_mesh.setdefault(getattr(p, "device_mesh", None), []).append(p)
    if len(by_mesh) == 1:
        torch.nn.utils.clip_grad_norm_(*by_mesh.values(), limit)
        return
    norms = [torch.nn.utils.get_total_norm([p.grad for p in k]) for k in by_mesh.values()]
    total = sum(getattr(n, "full_tensor", lambda n=n: n)().pow(2) for n in norms).sqrt()
    for k in by_mesh.values():
        torch.nn.utils.clip_grads_with_norm_(k, limit, total)


def train(
    run,
    model,
    optimizer,
    clip=None,
    average=False,
    parts=1,
    cut=rows,
    loss_function=loss_of,
    finish=None,
    steps=1,
    part=None,
):
    """One step of `parts` micro-batches. The loss that is shown is the mean over ranks where
    `average`; cut(run, tensor) is a rank's part of the batch; finish(parameters) is called between
    backward and the optimizer."""

    def step(ids, labels):
        optimizer.zero_grad()
        loss = torch.zeros(())
        for i, t in zip(ids.chunk(parts), labels.chunk(parts)):
            one = loss_function(model, i, t)
            if parts > 1:
                one = one / parts
            one.backward()
            loss = loss + one.detach()
        if finish:
            finish(list(model.parameters()))
        if clip:
            clip_together(model.parameters(), clip)
        for _ in range(steps):
            optimizer.step()
        shown = loss
        if average and run.world > 1:
            shown = shown.clone()
            torch.distributed.all_reduce(shown)
            shown = shown / run.world
        return {"loss": shown}

    ids, labels = batch()
    inputs = {"ids": cut(run, ids), "labels": cut(run, labels)}
    domain = {"range": [0, VOCABULARY - 1]}
    domains = dict.fromkeys(inputs, domain)
    # Of each micro-batch a rank has its part.
    lies = "S(0)" if parts == 1 else "S(0:%d)" % parts
    placements = dict.fromkeys(inputs, lies) if cut in (rows, strided) else None
    run.step(
        step, model, optimizer, inputs=inputs, domains=domains, part=part, placements=placements
    )


def adam(model):
    return torch.optim.AdamW(model.parameters(), 1e-2, foreach=False)


def data(run):
    model = Net()
    if run.world > 1:
        model = DistributedDataParallel(model)
    train(run, model, adam(model), average=True)


def mlp(run, wrap=DistributedDataParallel):
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
    if run.world > 1:
        model = wrap(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(x, y):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()

    made = torch.Generator().manual_seed(1)
    x, y = torch.randn(4, 8, generator=made), torch.randn(4, 4, generator=made)
    run.step(
        step,
        model,
        optimizer,
        inputs={"x": rows(run, x), "y": rows(run, y)},
        placements={"x": "S(0)", "y": "S(0)"},
    )


def mlp_alone(run):
    """Nobody adds the ranks' gradients."""
    mlp(run, lambda model: model)


def sharded(run):
    model = Net()
    if run.world > 1:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (run.world,))
        for layer in model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    train(run, model, adam(model), average=True)


def whole(run, t):
    """Ranks that share the work on one batch all read it."""
    return t.clone()


def data_clipped(run):
    model = Net()
    if run.world > 1:
        model = DistributedDataParallel(model)
    train(run, model, adam(model), clip=0.1, average=True)


def data_accumulated(run, parts=2):
    """Gradients are reduced after each micro-batch."""
    model = Net()
    if run.world > 1:
        model = DistributedDataParallel(model)
    train(run, model, adam(model), average=True, parts=parts)


def data_accumulated_4(run):
    data_accumulated(run, 4)


def data_delayed(run, parts=2):
    """Gradients are reduced after the last micro-batch."""
    model = Net()
    if run.world > 1:
        model = DistributedDataParallel(model)
    count = [0]

    def loss(m, ids, labels):
        count[0] += 1
        if run.world > 1 and count[0] % parts:
            with m.no_sync():
                return loss_of(m, ids, labels)
        return loss_of(m, ids, labels)

    train(run, model, adam(model), average=True, parts=parts, loss_function=loss)


def data_delayed_4(run):
    data_delayed(run, 4)


def strided(run, t):
    """Of each micro-batch a rank has its rows: the batch in rank-minor order."""
    return torch.cat([rows(run, part) for part in t.chunk(2)])


def data_strided(run):
    model = Net()
    if run.world > 1:
        model = DistributedDataParallel(model)
    train(run, model, adam(model), average=True, parts=2, cut=strided)


def one_accumulated(run):
    """The batch at once on one rank, in two parts on one rank too."""
    model = Net()
    train(run, model, adam(model), parts=2)


def tensor(run):
    """Columns, then rows, of each block's linears, by DTensor."""
    model = Net()
    if run.world > 1:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.parallel import (
            ColwiseParallel,
            RowwiseParallel,
            parallelize_module,
        )

        mesh = init_device_mesh("cpu", (run.world,))
        plan = {"feed.up": ColwiseParallel(), "feed.down": RowwiseParallel()}
        for layer in model.layers:
            parallelize_module(layer, mesh, plan, src_data_rank=None)
    train(run, model, adam(model), cut=whole)


def zero(run):
    """States of the optimizer on one rank each, parameters everywhere."""
    model = Net()
    if run.world > 1:
        from torch.distributed.optim import ZeroRedundancyOptimizer

        model = DistributedDataParallel(model)
        optimizer = ZeroRedundancyOptimizer(
            model.parameters(), torch.optim.AdamW, lr=1e-2, foreach=False
        )
    else:
        optimizer = adam(model)
    train(run, model, optimizer, average=True)


# Faults: each is the plan above it with one mistake.


def data_unsynchronised(run):
    """The second micro-batch's gradients stay on their rank."""
    model = Net()
    if run.world > 1:
        model = DistributedDataParallel(model)
    count = [0]

    def loss(m, ids, labels):
        count[0] += 1
        if run.world > 1 and count[0] % 2 == 0:
            with m.no_sync():
                return loss_of(m, ids, labels)
        return loss_of(m, ids, labels)

    train(run, model, adam(model), average=True, parts=2, loss_function=loss)


def data_summed(run):
    """Gradients are added, and not divided by the ranks."""
    model = Net()
    if run.world > 1:
        for p in model.parameters():
            p.register_post_accumulate_grad_hook(lambda p: torch.distributed.all_reduce(p.grad))
    train(run, model, adam(model), average=True, clip=0.1)


def data_clipped_early(run):
    """Each rank clips by the norm of its own gradients, before they are added."""
    model = Net()

    def finish(parameters):
        torch.nn.utils.clip_grad_norm_(parameters, 0.1)
        if run.world > 1:
            for p in model.parameters():
                torch.distributed.all_reduce(p.grad)
                p.grad /= run.world

    train(run, model, adam(model), average=True, finish=finish)


def data_one_left_out(run):
    """The head's bias is not reduced."""
    model = Net()

    def finish(parameters):
        if run.world > 1:
            for name, p in model.named_parameters():
                if name != "head.bias":
                    torch.distributed.all_reduce(p.grad)
                    p.grad /= run.world

    train(run, model, adam(model), average=True, finish=finish)


def data_by_hand(run):
    """The same without the mistake."""
    model = Net()

    def finish(parameters):
        if run.world > 1:
            for p in model.parameters():
                torch.distributed.all_reduce(p.grad)
                p.grad /= run.world

    train(run, model, adam(model), average=True, finish=finish)


def data_same_rows(run):
    """All ranks read the first rows."""
    model = Net()
    if run.world > 1:
        model = DistributedDataParallel(model)
    first = lambda run, t: t[: t.shape[0] // run.world].clone()  # noqa: E731
    train(run, model, adam(model), average=True, cut=first)


def data_stepped_twice(run):
    model = Net()
    if run.world > 1:
        model = DistributedDataParallel(model)
    train(run, model, adam(model), average=True, steps=1 + (run.world > 1))


def tensor_unreduced(run):
    """The product by rows is a summand on each rank, and is never summed."""
    model = Net()
    if run.world > 1:
        for layer in model.layers:
            layer.feed = HalfFeed(run, lambda x: x)
    train(run, model, adam(model), cut=whole, part=held_by(run))


class HalfFeed(nn.Module):
    """A rank's columns and rows of the feed-forward layer, by hand."""

    def __init__(self, run, join):
        super().__init__()
        n = 2 * WIDTH // run.world
        self.up, self.down, self.join = nn.Linear(WIDTH, n), nn.Linear(n, WIDTH), join

    def forward(self, x):
        x = F.gelu(self.up(Enter.apply(x)))
        return self.join(F.linear(x, self.down.weight)) + self.down.bias


class Enter(torch.autograd.Function):
    """A replica that each rank reads: its gradient is the sum of the ranks'."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        torch.distributed.all_reduce(g)
        return g


class Leave(torch.autograd.Function):
    """The sum of the ranks' parts: its gradient is each rank's own."""

    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        torch.distributed.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g


def held_by(run):
    """A rank's parts of the parameters that HalfFeed cuts, and of their states."""

    def part(name, values, held):
        if run.world == 1 or ".feed." not in name or name.endswith("down.bias"):
            return values(tuple(held.shape))
        n = 2 * WIDTH // run.world
        first = run.rank * n
        if "up" in name:
            shape = (2 * WIDTH,) + tuple(held.shape[1:])
            return values(shape)[first : first + n]
        return values((WIDTH, 2 * WIDTH))[:, first : first + n]

    return part


def tensor_by_hand(run):
    model = Net()
    if run.world > 1:
        for layer in model.layers:
            layer.feed = HalfFeed(run, Leave.apply)
    train(run, model, adam(model), cut=whole, part=held_by(run))
