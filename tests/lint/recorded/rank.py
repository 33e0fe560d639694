"""One process of a program of several ranks, as a user writes it with torch.distributed: its place
along each axis of a mesh, its parts of tensors that all know, and collectives. With one process the
same code is what the ranks should be together.

A program is f(r): it records what it does within `r.recorded()`, and `r.fault` says which mistake
it makes, "none" for none."""

import contextlib
import os
import sys
import zlib

import torch
import torch.distributed as dist
from isomer_capture.record import recorded

PROGRAMS = {}


def program(mesh, faults, undecided=""):
    """mesh: sizes of its axes. faults: the mistakes; undecided: those of which nothing can be said,
    "none" among them."""

    def add(f):
        f.mesh, f.faults, f.undecided = mesh, faults.split(), undecided.split()
        PROGRAMS[f.__name__] = f
        return f

    return add


class Rank:
    def __init__(self, mesh, fault, folder):
        self.fault, self.folder = fault, folder
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.size = {a: n if self.world > 1 else 1 for a, n in mesh.items()}
        self.at, self.group, self.stride, stride = {}, {}, {}, 1
        for axis in reversed(mesh):
            self.at[axis], self.stride[axis] = self.rank // stride % self.size[axis], stride
            for first in range(self.world):
                if first // stride % self.size[axis] == 0 and self.size[axis] < self.world:
                    members = [first + k * stride for k in range(self.size[axis])]
                    g = dist.new_group(members, group_desc="%s%d" % (axis, first))
                    if self.rank in members:
                        self.group[axis] = g
            self.group.setdefault(axis, dist.group.WORLD)
            stride *= self.size[axis]
        self.group["all"], self.size["all"] = dist.group.WORLD, self.world
        self.axes = list(mesh)
        self.module, self.inputs, self.said, self.out = torch.nn.Module(), {}, {}, {}

    def wrong(self, *faults):
        """Whether it makes one of these mistakes; one process alone makes none."""
        return self.fault in faults and self.world > 1

    # ---- leaves ----

    def draw(self, name, shape, scale=1.0):
        g = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        return torch.randn(shape, generator=g) * scale

    def mine(self, t, cut):
        for axis, dim in cut.items():
            t = t.chunk(self.size[axis], dim)[self.at[axis]]
        return t.contiguous().clone()

    def say(self, name, cut):
        self.said[name] = ["S(%d)" % cut[a] if a in cut else "R" for a in self.axes]

    def param(self, name, *shape, shift=0.0, **cut):
        """A parameter that is cut along a dimension over each axis that is named."""
        p = torch.nn.Parameter(self.mine(self.draw(name, shape, 0.4) + shift, cut))
        self.module.register_parameter(name, p)
        self.say(name, cut)
        return p

    def input(self, name, *shape, values=None, **cut):
        t = self.mine(self.draw(name, shape) if values is None else values, cut)
        self.inputs[name] = t
        self.say(name, cut)
        return t

    def tokens(self, name, *shape, below, **cut):
        g = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        return self.input(name, values=torch.randint(0, below, shape, generator=g), **cut)

    # ---- what is recorded ----

    @contextlib.contextmanager
    def recorded(self):
        said = {k: v[0] if len(v) == 1 else v for k, v in self.said.items()}
        with recorded(self.module, self.inputs, said) as r:
            yield
            for name, t in self.out.items():
                r.output(name, t)

    def gives(self, name, t):
        self.out[name] = t.detach()

    def update(self, name, t):
        """The new value of a parameter."""
        self.gives("updated." + name, t)
        self.said["updated." + name] = self.said[name]

    def write(self):
        """What each rank has in the end, for truth by execution."""
        held = {"out": {k: v.detach().clone() for k, v in self.out.items()}, "said": self.said}
        for name, p in self.module.named_parameters():
            if p.grad is not None:
                held["out"]["grad." + name] = p.grad.clone()
                held["said"]["grad." + name] = self.said[name]
        held["mesh"] = {a: self.size[a] for a in self.axes}
        torch.save(held, os.path.join(self.folder, "%d-of-%d.pt" % (self.rank, self.world)))

    # ---- collectives over an axis, or over "all" ----

    def reduced(self, t, axis, op=dist.ReduceOp.SUM):
        t = t.detach().clone().contiguous()
        dist.all_reduce(t, op, group=self.group[axis])
        return t

    def averaged(self, t, axis):
        return self.reduced(t, axis) / dist.get_world_size(self.group[axis])

    def largest(self, t, axis):
        return self.reduced(t, axis, dist.ReduceOp.MAX)

    def gathered(self, t, axis, dim=0):
        parts = [torch.empty_like(t) for _ in range(self.size[axis])]
        dist.all_gather(parts, t.detach().contiguous(), group=self.group[axis])
        return torch.cat(parts, dim)

    def scattered(self, t, axis):
        """The sum's rows of this rank."""
        out = t.new_empty(t.shape[0] // self.size[axis], *t.shape[1:])
        dist.reduce_scatter_tensor(out, t.detach().contiguous(), group=self.group[axis])
        return out

    def exchanged(self, t, axis, split, cat):
        """Part k along `split` goes to rank k, which joins what it gets along `cat`."""
        parts = [p.contiguous() for p in t.detach().chunk(self.size[axis], split)]
        out = [torch.empty_like(p) for p in parts]
        dist.all_to_all(out, parts, group=self.group[axis])
        return torch.cat(out, cat)

    def swapped(self, t, axis):
        """Part k of the rows goes to rank k."""
        t = t.detach().contiguous()
        out = torch.empty_like(t)
        dist.all_to_all_single(out, t, group=self.group[axis])
        return out

    def passed(self, t, axis, by=1):
        """What the neighbour before has, in a ring."""
        n, out = self.size[axis], torch.empty_like(t)
        base = self.rank - self.at[axis] * self.stride[axis]
        to, come = (base + (self.at[axis] + k) % n * self.stride[axis] for k in (by, -by))
        ops = [dist.P2POp(dist.isend, t.contiguous(), to), dist.P2POp(dist.irecv, out, come)]
        for w in dist.batch_isend_irecv(ops):
            w.wait()
        return out


# ---- with derivatives ----


def end(r, loss, axis=None):
    """Backward from a rank's loss; its mean over the ranks of an axis is given."""
    loss.backward()
    r.gives("loss", r.averaged(loss, axis) if axis else loss)


def each_gradient(r, f, without=()):
    for name, p in r.module.named_parameters():
        if name not in without:
            p.grad = f(p.grad)


def pair(forward, backward):
    """A function of a tensor, a rank and an axis, and what its gradient is."""

    class Pair(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, r, axis, *how):
            ctx.of = r, axis, how
            return forward(r, x, axis, *how)

        @staticmethod
        def backward(ctx, g):
            r, axis, how = ctx.of
            return (backward(r, g, axis, *how), None, None) + (None,) * len(how)

    return Pair.apply


same = lambda r, t, axis: t.view_as(t)
summed = pair(Rank.reduced, same)  # what follows is the same on all ranks
copied = pair(same, Rank.reduced)  # what follows is each rank's own
joined = pair(Rank.gathered, lambda r, g, axis: r.scattered(g, axis))  # rows
spread = pair(Rank.scattered, Rank.gathered)
split = pair(lambda r, t, axis: t.chunk(r.size[axis])[r.at[axis]].contiguous(), Rank.gathered)


def main():
    name, fault, folder = sys.argv[1:]
    if os.environ.get("WORLD_SIZE", "1") == "1":
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    else:
        dist.init_process_group("gloo")
    r = Rank(PROGRAMS[name].mesh, fault, folder)
    PROGRAMS[name](r)
    r.write()
    dist.destroy_process_group()
