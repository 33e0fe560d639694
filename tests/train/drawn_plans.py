"""Training steps that nobody tuned for, for isomer-capture train: a decoder, how its layers, its
batch and its weights are spread over ranks, micro-batches, clipping, optimizer and loss, all said
by the name of the function, as llama_p1d2t2_sharded_parts2_hand_tied_sgd_sum. With one rank each
is the step on one device, over the whole batch at once."""

import functools

import decoders
import torch
import torch.distributed as dist
import torch.nn.functional as F
from pipelines import Stage
from plans import VOCABULARY, batch, clip_together

LAYERS, MOST = 2, 0.1


class TiedEnd(Stage):
    """The last stage, whose head is the embedding, and has its name."""

    def __init__(self, whole, stage, stages):
        super().__init__(whole, stage, stages)
        del self.embed
        self._modules = {"embed": whole.embed, **self._modules}

    def forward(self, x):
        for layer in self.layers.values():
            x = layer(x)
        return self.head(self.norm(x))


def spec_of(name):
    """What the words of a name say."""
    model, mesh, *words = name.split("_")
    pipe, data, tensor = (int(n) for n in mesh[1:].replace("d", " ").replace("t", " ").split())
    parts = [int(w[5:]) for w in words if w.startswith("parts")]
    has = set(words)
    return {
        "model": model,
        "cut": (pipe, data, tensor),
        "sharded": "sharded" in has,
        "sequence": "sequence" in has,
        "parts": parts[0] if parts else 1,
        "clip": next((k for k in ("torch", "hand", "squares", "roots") if k in has), None),
        "tied": "tied" in has,
        "optimizer": next((k for k in ("sgd", "momentum") if k in has), "adamw"),
        "sum": "sum" in has,
    }


def optimizer_of(spec, parameters):
    if spec["optimizer"] == "adamw":
        return torch.optim.AdamW(parameters, 1e-2, foreach=False)
    momentum = 0.9 if spec["optimizer"] == "momentum" else 0
    return torch.optim.SGD(parameters, 1e-2, momentum=momentum, foreach=False)


def loss_of(spec, times=1):
    how = "sum" if spec["sum"] else "mean"

    def loss(logits, labels):
        one = F.cross_entropy(logits.reshape(-1, VOCABULARY), labels.reshape(-1), reduction=how)
        return one * times if times > 1 else one

    return loss


def times_of(spec):
    """FSDP2 averages gradients over ranks: of a sum each rank's loss is that many times as much."""
    return spec["cut"][1] if spec["sum"] and spec["sharded"] else 1


def model_of(spec):
    whole = decoders.MODELS[spec["model"]](LAYERS)
    if spec["tied"]:
        whole.head.weight = whole.embed.weight
    elif spec["model"] == "gpt":
        whole.head.weight = torch.nn.Parameter(torch.empty_like(whole.head.weight).normal_())
    return whole


def local(t):
    return t.to_local() if hasattr(t, "to_local") else t


def is_cut(p, dim):
    """Whether ranks along this dimension of the mesh have parts of a parameter."""
    if not hasattr(p, "placements") or dim not in p.device_mesh.mesh_dim_names:
        return False
    return not p.placements[p.device_mesh.mesh_dim_names.index(dim)].is_replicate()


def square_of(spec, g):
    """Of a gradient's norm: as PyTorch has it, or the sum of squares."""
    return g.norm(2) ** 2 if spec["clip"] == "hand" else g.pow(2).sum()


def clip_by_hand(spec, parameters, mesh, counted, twice=False):
    """As Megatron does: each rank's sum of squares, of what all have on the first of them alone, is
    summed over all ranks that have parts or other layers. `twice` is a fault: what all have is
    counted by each."""
    square = torch.zeros(())
    for p in parameters:
        if hasattr(p.grad, "placements") and p.grad.placements != p.placements:
            p.grad = p.grad.redistribute(placements=p.placements)
        first = twice or all(
            is_cut(p, k) or mesh.get_local_rank(k) == 0 for k in ("data", "tensor")
        )
        if first and counted(p):
            square = square + square_of(spec, local(p.grad))
    dist.all_reduce(square)
    multiply(parameters, square)


def multiply(parameters, square):
    scale = torch.clamp(MOST / (square**0.5 + 1e-6), max=1.0)
    for p in parameters:
        local(p.grad).mul_(scale)


def alone(run, spec):
    model, loss_function = model_of(spec), loss_of(spec)
    optimizer = optimizer_of(spec, model.parameters())

    def step(ids, labels):
        optimizer.zero_grad()
        loss = loss_function(model(ids), labels)
        loss.backward()
        if spec["clip"] == "roots":  # no norm of PyTorch's on either side
            multiply(
                list(model.parameters()), sum(square_of(spec, p.grad) for p in model.parameters())
            )
        elif spec["clip"]:
            torch.nn.utils.clip_grad_norm_(model.parameters(), MOST)
        optimizer.step()
        return {"loss": loss.detach()}

    ids, labels = batch()
    inputs = {"ids": ids, "labels": labels}
    domains = dict.fromkeys(inputs, {"range": [0, VOCABULARY - 1]})
    run.step(step, model, optimizer, inputs=inputs, domains=domains)


def spread(module, spec, mesh):
    """Weights over `tensor`, then all of them over `data`."""
    if spec["cut"][2] > 1:
        decoders.split(module, mesh["tensor"], spec["sequence"])
    if not spec["sharded"]:
        return
    from torch.distributed.fsdp import fully_shard

    # Layers stay whole between micro-batches of a pipeline, as its schedule has them run by turns.
    whole = {"reshard_after_forward": False} if spec["cut"][0] > 1 else {}
    layers = list(decoders.layers_of(module))
    for m in [*layers, module]:
        fully_shard(m, mesh=mesh["data"], **whole)


def average(module, spec, group):
    for p in module.parameters():
        g = local(p.grad)
        dist.all_reduce(g, group=group)
        if not spec["sum"]:
            g.div_(dist.get_world_size(group))


def forward_backward(model, spec, ids, labels):
    total, parts = torch.zeros(()), spec["parts"]
    for i, t in zip(ids.chunk(parts), labels.chunk(parts)):
        loss = loss_of(spec, times_of(spec))(model(i), t) / (1 if spec["sum"] else parts)
        loss.backward()
        total = total + loss.detach()
    return total


def schedule_of(module, spec, mesh):
    from torch.distributed import pipelining

    at, stages = mesh.get_local_rank("pipe"), spec["cut"][0]
    group = mesh.get_group("pipe")
    stage = pipelining.PipelineStage(module, at, stages, torch.device("cpu"), group=group)
    loss_function = loss_of(spec, times_of(spec))
    return pipelining.Schedule1F1B(
        stage, 2 * spec["parts"], loss_fn=loss_function, scale_grads=not spec["sum"]
    )


def plan(run, name):
    spec = spec_of(name)
    if run.world == 1:
        return alone(run, spec)
    from torch.distributed.device_mesh import init_device_mesh

    pipe, data, tensor = spec["cut"]
    mesh = init_device_mesh("cpu", spec["cut"], mesh_dim_names=("pipe", "data", "tensor"))
    at, last = mesh.get_local_rank("pipe"), mesh.get_local_rank("pipe") == pipe - 1
    whole = model_of(spec)
    stage = TiedEnd if spec["tied"] and last else Stage
    module = stage(whole, at, pipe) if pipe > 1 else whole
    spread(module, spec, mesh)
    schedule = schedule_of(module, spec, mesh) if pipe > 1 else None
    optimizer = optimizer_of(spec, module.parameters())

    def counted(p):
        """A weight that two stages have is the first one's."""
        return not (spec["tied"] and pipe > 1 and last and p is module.head.weight)

    def finish():
        if data > 1 and not spec["sharded"]:
            average(module, spec, mesh.get_group("data"))
        if spec["tied"] and pipe > 1 and (at == 0 or last):
            tied = module.embed.weight if at == 0 else module.head.weight
            ends(tied, mesh, pipe)
        if spec["clip"] == "torch" and pipe == 1:
            clip_together(list(module.parameters()), MOST)
        elif spec["clip"]:
            clip_by_hand(spec, list(module.parameters()), mesh, counted, "twice" in name)
        optimizer.step()

    def step(ids=None, labels=None):
        optimizer.zero_grad()
        if pipe > 1:
            losses = [] if last else None
            schedule.step(*([ids] if at == 0 else []), target=labels, losses=losses)
            total = (
                torch.stack(losses).sum() / (1 if spec["sum"] else len(losses)) if last else None
            )
        else:
            total = forward_backward(module, spec, ids, labels)
        finish()
        if total is None:
            return {}
        if data > 1:
            total = total.detach().clone()
            dist.all_reduce(total, group=mesh.get_group("data"))
            total = total / (times_of(spec) if spec["sum"] else data)
        return {"loss": total.detach()}

    ids, labels = (t.chunk(data)[mesh.get_local_rank("data")].clone() for t in batch())
    inputs = {"ids": ids} if at == 0 else {}
    if last:
        inputs["labels"] = labels
    domains = dict.fromkeys(inputs, {"range": [0, VOCABULARY - 1]})
    run.step(step, module, optimizer, inputs=inputs, domains=domains)


def ends(p, mesh, pipe):
    """Both ends of the pipeline add up what they have of the tied weight's gradient."""
    ranks = mesh.mesh.tolist()
    mine = dist.get_rank()
    for d in range(mesh.size(1)):
        for t in range(mesh.size(2)):
            both = [ranks[0][d][t], ranks[pipe - 1][d][t]]
            group = group_of(tuple(both))
            if mine in both:
                dist.all_reduce(local(p.grad), group=group)


@functools.cache
def group_of(ranks):
    return dist.new_group(list(ranks), use_local_synchronization=True)


def __getattr__(name):
    if name.startswith("_") or "_p" not in name:
        raise AttributeError(name)
    return functools.partial(plan, name=name)
