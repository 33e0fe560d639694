"""Memory that a collective or a message still works on. What it holds is decided by the network, so
a program waits before it reads what comes, and before it writes over what goes out. One that does
not is an error: on this machine it may be lucky, and a capture would say that it always is."""

import torch
import torch.distributed as dist

from ..errors import CaptureError
from ..record.buffers import Storages, buffers
from ..record.posted import posted
from ..works import Works


class Operation:
    """results, inputs: byte ranges (record/buffers.py) in the memory that `keep` holds. queue: what
    works it off in order: messages to one peer, the collectives of a group."""

    def __init__(self, storages, one, source):
        self.op, self.source, self.keep = one.event["op"], source, one
        self.queue = one.event["group"][0], one.event.get("peer")
        sent = self.op == "broadcast" and one.event["root"] == dist.get_rank()
        self.results = [] if sent else buffers(storages, one.results)
        self.inputs = buffers(storages, one.inputs)

    def __str__(self):
        return self.op + at(self.source)


class Flight(Works):
    """Of one rank: the operations whose Work the program holds and has not waited for."""

    def __init__(self, here):
        super().__init__(lambda: self.posted, self.started, self.ended)
        self.here, self.storages, self.posted, self.flying = here, Storages(), None, []

    def started(self, operation):
        self.flying.append(operation)

    def ended(self, operation):
        """With all before it in its queue."""
        if operation in self.flying:
            k = self.flying.index(operation)
            self.flying = [f for f in self.flying[:k] if f.queue != operation.queue] + (
                self.flying[k + 1 :]
            )

    def operator(self, func, args, kwargs):
        if func.namespace == "c10d":
            one = posted(func, args, kwargs)
            if one:
                self.posted = Operation(self.storages, one, self.source())
                self.touch(self.posted.inputs, self.posted.results, self.posted.queue)
        elif self.flying:
            reads, writes = touched(func, args, kwargs)
            self.touch(buffers(self.storages, reads), buffers(self.storages, writes))

    def touch(self, reads, writes, queue=None):
        for f in self.flying:
            if f.queue == queue:
                continue
            if meet(f.results, reads + writes):
                self.refuse("what %s brings is used%s" % (f, at(self.source())))
            if meet(f.inputs, writes):
                self.refuse("what %s sends is written over%s" % (f, at(self.source())))

    def close(self):
        """At the end of a step: what nobody has waited for brings its result at some later time."""
        for f in self.flying:
            if f.results:
                self.refuse("what %s brings is left by the step" % f)

    @staticmethod
    def refuse(what):
        raise CaptureError(
            "%s, and the program has not waited for it: what is there is decided as it runs" % what
        )

    def source(self):
        return self.here().get("source")


def at(source):
    return " (%s)" % source if source else ""


def meet(some, others):
    return any(s == t and i < j + m and j < i + n for s, i, n in some for t, j, m in others)


def touched(func, args, kwargs):
    """The tensors that an operator reads, and those that it writes; of a view neither."""
    reads, writes = [], []
    for k, a in enumerate(func._schema.arguments):
        given = args[k] if k < len(args) and not a.kwarg_only else kwargs.get(a.name)
        given = given if isinstance(given, (list, tuple)) else [given]
        tensors = [t for t in given if isinstance(t, torch.Tensor)]
        if a.alias_info is None:
            reads += tensors
        elif a.alias_info.is_write:
            writes += tensors
    return reads, writes
