"""Training steps by torch.distributed.pipelining, for isomer-capture train: a decoder's layers in
stages, one on each rank, over micro-batches. With one rank each is the step on one device."""

import functools

import torch
import torch.distributed as dist
import torch.nn.functional as F
from decoders import LENGTH, VOCABULARY, llama, split
from plans import adam, batch
from torch import nn

PARTS = 4


class Stage(nn.Module):
    """The layers of one stage, by the whole model's names; the first has the embedding, the last
    the norm and the head."""

    def __init__(self, whole, stage, stages):
        super().__init__()
        n = len(whole.layers) // stages
        mine = range(stage * n, (stage + 1) * n)
        self.embed = whole.embed if stage == 0 else None
        self.positions = whole.positions if stage == 0 else None
        self.layers = nn.ModuleDict({str(k): whole.layers[k] for k in mine})
        self.norm = whole.norm if stage == stages - 1 else None
        self.head = whole.head if stage == stages - 1 else None

    def forward(self, x):
        if self.embed is not None:
            x = self.embed(x)
            if self.positions is not None:
                x = x + self.positions(torch.arange(LENGTH))
        for layer in self.layers.values():
            x = layer(x)
        return x if self.head is None else self.head(self.norm(x))


def loss_of(logits, labels):
    return F.cross_entropy(logits.reshape(-1, VOCABULARY), labels.reshape(-1))


def alone(run, model, clip):
    optimizer = adam(model)

    def step(ids, labels):
        optimizer.zero_grad()
        loss = loss_of(model(ids), labels)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        return {"loss": loss.detach()}

    ids, labels = batch()
    domain = {"range": [0, VOCABULARY - 1]}
    inputs = {"ids": ids, "labels": labels}
    run.step(step, model, optimizer, inputs=inputs, domains=dict.fromkeys(inputs, domain))


def stages_of(run, whole, each):
    from torch.distributed.pipelining import PipelineStage

    n = run.world * each
    out = []
    for k in range(each):
        index = k * run.world + run.rank
        module = Stage(whole, index, n)
        out.append((module, PipelineStage(module, index, n, torch.device("cpu"))))
    return out


def pipeline(run, make=llama, schedule="ScheduleGPipe", each=1, layers=None, clip=None):
    layers = layers or 4
    whole = make(layers)
    if run.world == 1:
        return alone(run, whole, clip)
    from torch.distributed import pipelining

    stages = stages_of(run, whole, each)
    modules = nn.ModuleList(m for m, _ in stages)
    given = [s for _, s in stages] if each > 1 else stages[0][1]
    plan = getattr(pipelining, schedule)(given, PARTS, loss_fn=loss_of)
    optimizer = adam(modules)
    first, final = run.rank == 0, run.rank == run.world - 1

    def step(ids=None, labels=None):
        optimizer.zero_grad()
        losses = [] if final else None
        plan.step(*([ids] if first else []), target=labels, losses=losses)
        if clip:
            clipped(modules, clip)
        optimizer.step()
        return {"loss": torch.stack(losses).mean().detach()} if final else {}

    ids, labels = batch()
    inputs = {"ids": ids} if first else {}
    if final:
        inputs["labels"] = labels
    domain = {"range": [0, VOCABULARY - 1]}
    domains = dict.fromkeys(inputs, domain)
    run.step(step, [m for m, _ in stages], optimizer, inputs=inputs, domains=domains)


def clipped(module, most):
    """By the norm of all stages' gradients."""
    held = [p.grad for p in module.parameters()]
    square = torch.stack([g.norm() for g in held]).norm() ** 2
    dist.all_reduce(square)
    scale = torch.clamp(most / (square.sqrt() + 1e-6), max=1.0)
    for g in held:
        g.mul_(scale)


def mixed(run, make=llama, cut=(2, 2, 2), layers=2, sharded=False, fault=None):
    """Layers in stages, over as many ranks as `cut` says: stages, replicas or shards of the batch,
    columns and rows of the weights."""
    whole = make(layers)
    if run.world == 1:
        return alone(run, whole, None)
    from torch.distributed import pipelining
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", cut, mesh_dim_names=("pipe", "data", "tensor"))
    at, replica = mesh.get_local_rank("pipe"), mesh.get_local_rank("data")
    last, replicas = at == cut[0] - 1, mesh.get_group("data")
    module = Stage(whole, at, cut[0])
    if cut[2] > 1:
        split(module, mesh["tensor"])
    if sharded:
        from torch.distributed.fsdp import fully_shard

        for layer in module.layers.values():
            fully_shard(layer, mesh=mesh["data"], reshard_after_forward=False)
        fully_shard(module, mesh=mesh["data"], reshard_after_forward=False)
    stage = pipelining.PipelineStage(
        module, at, cut[0], torch.device("cpu"), group=mesh.get_group("pipe")
    )
    plan = pipelining.Schedule1F1B(stage, PARTS, loss_fn=loss_of)
    optimizer = adam(module)

    def step(ids=None, labels=None):
        optimizer.zero_grad()
        losses = [] if last else None
        plan.step(*([ids] if at == 0 else []), target=labels, losses=losses)
        if not sharded:
            average(module, replicas, fault, last)
        optimizer.step()
        if not last:
            return {}
        loss = torch.stack(losses).mean().detach()
        dist.all_reduce(loss, group=replicas)
        return {"loss": loss / cut[1]}

    mine = 0 if fault == "same_rows" else replica
    ids, labels = (t.chunk(cut[1])[mine].clone() for t in batch())
    inputs = {"ids": ids} if at == 0 else {}
    if last:
        inputs["labels"] = labels
    domains = dict.fromkeys(inputs, {"range": [0, VOCABULARY - 1]})
    run.step(step, module, optimizer, inputs=inputs, domains=domains)


def average(module, group, fault, last):
    """The gradients over replicas of a stage."""
    for name, p in module.named_parameters():
        g = p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad
        left_out = (fault == "norm" and "norm" in name) or (fault == "last_stage" and last)
        if not left_out and fault != "unreduced":
            dist.all_reduce(g, group=group)
        if fault != "summed":
            g.div_(dist.get_world_size(group))


SCHEDULES = {
    "gpipe": ("ScheduleGPipe", 1),
    "one_forward": ("Schedule1F1B", 1),
    "interleaved": ("ScheduleInterleaved1F1B", 2),
    "zero_bubble": ("ScheduleInterleavedZeroBubble", 2),
}
for _called, (_schedule, _each) in SCHEDULES.items():
    _plan = functools.partial(pipeline, schedule=_schedule, each=_each)
    globals()[_called] = _plan
    globals()[_called + "_clipped"] = functools.partial(_plan, clip=0.1)

mixed_sharded = functools.partial(mixed, sharded=True)
mixed_replicas = functools.partial(mixed, cut=(2, 2, 1))
mixed_columns = functools.partial(mixed, cut=(2, 1, 2))
mixed_flat = functools.partial(mixed, cut=(1, 2, 2))
for _fault in ("unreduced", "summed", "norm", "last_stage"):
    globals()["mixed_" + _fault] = functools.partial(mixed, fault=_fault)
mixed_same_rows = functools.partial(mixed_replicas, fault="same_rows")
