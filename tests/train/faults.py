"""Mistakes of training plans that public reports tell of, each made in a plan of decoders.py that
is right without it, for isomer-capture train. With one rank each is the step on one device."""

import functools

import decoders
import torch
import torch.distributed as dist
from decoders import gpt, llama, split
from plans import adam, loss_of, train, whole


def reduced(run, p, group=None, by=None):
    dist.all_reduce(p.grad, group=group)
    p.grad /= by or run.world


def by_hand(run, fault=None, **more):
    """Data parallel: gradients are added, and divided by the ranks."""
    model = gpt(1)

    def finish(_):
        for name, p in model.named_parameters():
            if run.world > 1:
                (fault or right)(run, name, p)

    train(run, model, adam(model), average=True, finish=finish, **more)


def right(run, name, p):
    reduced(run, p)


def no_norm(run, name, p):
    """A norm's weight is not reduced."""
    if not name.endswith("norm.weight"):
        reduced(run, p)


def no_bias(run, name, p):
    if not name.endswith("up.bias"):
        reduced(run, p)


def twice_divided(run, name, p):
    reduced(run, p, by=run.world**2)


def not_divided(run, name, p):
    reduced(run, p, by=1)


def wrong_count(run, name, p):
    """Divided by one rank too many."""
    reduced(run, p, by=run.world + 1)


def reduced_twice(run, name, p):
    """A replica's bias is reduced again by a second hook."""
    reduced(run, p)
    if name.endswith("down.bias"):
        dist.all_reduce(p.grad)


def largest(run, name, p):
    dist.all_reduce(p.grad, op=dist.ReduceOp.MAX)


def from_first(run, name, p):
    """Every rank takes the first one's gradient."""
    dist.broadcast(p.grad, 0)


def before_its_turn(run, name, p):
    """The sum of the ranks is added to a rank's own."""
    own = p.grad.clone()
    reduced(run, p)
    p.grad += own


hand = by_hand
HAND = (
    no_norm,
    no_bias,
    twice_divided,
    not_divided,
    wrong_count,
    reduced_twice,
    largest,
    from_first,
    before_its_turn,
)
for _fault in HAND:
    globals()["hand_" + _fault.__name__] = functools.partial(by_hand, fault=_fault)


def frozen(run, trained=False, decayed=False, remembered=False):
    """A bias is not trained. With `trained` the ranks do it all the same, with `decayed` the last
    one makes it smaller, and with `remembered` all put it into a mean that one device leaves."""
    model = gpt(1)
    kept = [p for name, p in model.named_parameters() if name.endswith("up.bias")]
    for p in kept:
        p.requires_grad_(trained and run.world > 1)
    model.register_buffer("mean", torch.zeros_like(kept[0]))

    def finish(parameters):
        for p in parameters:
            if run.world > 1 and p.grad is not None:
                reduced(run, p)
        if decayed and run.rank == run.world - 1 > 0:
            with torch.no_grad():
                for p in kept:
                    p.mul_(0.9)
        if remembered and run.world > 1:
            with torch.no_grad():
                model.mean.lerp_(kept[0].detach(), 0.1)

    train(run, model, adam(model), average=True, finish=finish)


frozen_trained = functools.partial(frozen, trained=True)
frozen_decayed = functools.partial(frozen, decayed=True)
frozen_remembered = functools.partial(frozen, remembered=True)


def hand_wrong_group(run):
    """Halves of the ranks each reduce their own."""
    half = run.world // 2 or 1
    groups = [dist.new_group(list(range(k, k + half))) for k in range(0, run.world, half)]
    mine = groups[run.rank // half] if run.world > 1 else None
    by_hand(run, lambda run, name, p: reduced(run, p, mine, half))


def hand_embedding_dropped(run):
    """Of the tied embedding, the gradient that the head gives is left out."""

    def loss(model, ids, labels):
        if run.world > 1:
            tied = model.head.weight
            model.head.weight = torch.nn.Parameter(tied.detach().clone(), requires_grad=False)
            out = loss_of(model, ids, labels)
            model.head.weight = tied
            return out
        return loss_of(model, ids, labels)

    by_hand(run, loss_function=loss)


def hand_batch_dropped(run):
    """The last micro-batch is read, and the first one's rows are in its place."""
    seen = []

    def loss(model, ids, labels):
        seen.append((ids, labels))
        if run.world > 1 and len(seen) % 2 == 0:
            ids, labels = seen[-2]
        return loss_of(model, ids, labels)

    by_hand(run, loss_function=loss, parts=2)


def hand_labels_swapped(run):
    """Labels are those of the next rank's rows."""
    read = []

    def cut(run, t):
        read.append(t)
        r = (run.rank + (len(read) == 2)) % run.world
        n = t.shape[0] // run.world
        return t[r * n : (r + 1) * n].clone()

    by_hand(run, cut=cut)


def sharded(run, local_norm=False):
    model = llama(1)
    finish = None
    if run.world > 1:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (run.world,))
        for layer in model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)

        def finish(parameters):
            held = [p.grad.to_local() for p in parameters]
            norm = torch.stack([g.norm() for g in held]).norm()
            if not local_norm:
                square = norm**2
                dist.all_reduce(square)
                norm = square.sqrt()
            scale = torch.clamp(0.1 / (norm + 1e-6), max=1.0)
            for g in held:
                g *= scale
    else:

        def finish(parameters):
            torch.nn.utils.clip_grad_norm_(parameters, 0.1)

    train(run, model, adam(model), average=True, finish=finish)


def sharded_local_norm(run):
    """Each rank clips by the norm of its own shards."""
    sharded(run, local_norm=True)


def sequence(run, fault=None):
    model = llama(1)
    finish = None
    if run.world > 1:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor, Replicate

        mesh = init_device_mesh("cpu", (run.world,))
        split(model, mesh, True)

        def finish(parameters):
            for name, p in model.named_parameters():
                if fault and "norm" in name:
                    p.grad = fault(run, mesh, p, DTensor, Replicate)

    train(run, model, adam(model), cut=whole, finish=finish)


def sequence_norm_unreduced(run):
    """A norm under sequence parallel keeps a rank's part of its gradient."""
    sequence(
        run,
        lambda run, mesh, p, D, R: D.from_local(p.grad.to_local(), mesh, [R()], run_check=False),
    )


def sequence_norm_averaged(run):
    """The ranks' parts of a norm's gradient are averaged."""

    def average(run, mesh, p, D, R):
        whole = p.grad.redistribute(mesh, [R()]).to_local() / run.world
        return D.from_local(whole, mesh, [R()], run_check=False)

    sequence(run, average)


def sequence_norm_multiplied(run):
    """Their sum is taken so many times as there are ranks."""

    def times(run, mesh, p, D, R):
        whole = p.grad.redistribute(mesh, [R()]).to_local() * run.world
        return D.from_local(whole, mesh, [R()], run_check=False)

    sequence(run, times)


def sequence_norm_summed(run):
    """That is right: the ranks' parts are added up, and nothing more."""

    def summed(run, mesh, p, D, R):
        whole = p.grad.redistribute(mesh, [R()]).to_local()
        return D.from_local(whole, mesh, [R()], run_check=False)

    sequence(run, summed)


def averaged_again(run, p):
    p.grad /= run.world


def multiplied(run, p):
    """The sum where the mean is meant."""
    p.grad *= run.world


def there_and_back(run, p):
    """That is right."""
    p.grad *= run.world
    p.grad /= run.world


def scaled(run, plan, by):
    """What a wrapper has made of the gradients, once more with a number of ranks."""

    def finish(parameters):
        for p in parameters if run.world > 1 else ():
            by(run, p)

    plan(run, lambda: decoders.llama(1), finish=finish)


WRAPPERS = ("data", "sharded", "tensor", "sequence", "mixed")
for _plan in WRAPPERS:
    for _by in (averaged_again, multiplied, there_and_back):
        globals()["wrapped_%s_%s" % (_plan, _by.__name__)] = functools.partial(
            scaled, plan=getattr(decoders, _plan), by=_by
        )
