"""Training steps of a small model by the plans of PyTorch's own wrappers, for isomer-capture
train: with one rank each is the step on one device."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH, LENGTH, WIDTH, VOCABULARY = 4, 4, 8, 16


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


def train(run, model, optimizer, clip=None, average=False):
    def step(ids, labels):
        optimizer.zero_grad()
        loss = loss_of(model, ids, labels)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        shown = loss.detach()
        if average and run.world > 1:
            shown = shown.clone()
            torch.distributed.all_reduce(shown)
            shown = shown / run.world
        return {"loss": shown}

    ids, labels = batch()
    inputs = {"ids": rows(run, ids), "labels": rows(run, labels)}
    domain = {"range": [0, VOCABULARY - 1]}
    run.step(step, model, optimizer, inputs=inputs, domains=dict.fromkeys(inputs, domain))


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
    run.step(step, model, optimizer, inputs={"x": rows(run, x), "y": rows(run, y)})


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
