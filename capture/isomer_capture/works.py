"""What process groups give a program to wait for, torch.distributed's `Work`, and its waits. Which
methods of a group post an operation is seen from what they return: their names change with
PyTorch's versions."""

import functools

import torch.distributed as dist
from torch.utils._python_dispatch import _disable_current_modes

WAITS = ("wait", "synchronize", "get_future", "block_current_stream")


class Works:
    """`last` gives the operation that was posted last, `returned` is told an operation whose Work
    the program is given, `waited` one that it is about to wait for."""

    def __init__(self, last, returned, waited):
        self.last, self.returned, self.waited = last, returned, waited
        self.given, self.replaced, self.seen = {}, [], set()

    def __enter__(self):
        for name, method in list(vars(dist.ProcessGroup).items()):
            if type(method).__name__ == "instancemethod" and not name.startswith("__"):
                self.replace(
                    dist.ProcessGroup, name, self.posting(getattr(dist.ProcessGroup, name))
                )
        self.watch(dist.Work)
        return self

    def __exit__(self, *error):
        for kind, name, original in reversed(self.replaced):
            setattr(kind, name, original)

    def replace(self, kind, name, method):
        self.replaced.append((kind, name, vars(kind)[name]))
        setattr(kind, name, method)

    def posting(self, original):
        @functools.wraps(original)
        def method(group, *args, **kwargs):
            before = self.last()
            work = original(group, *args, **kwargs)
            if self.last() is not before and isinstance(work, dist.Work):
                self.given[id(work)] = work, self.last()
                self.watch(type(work))
                self.returned(self.last())
            return work

        return method

    def watch(self, work):
        for kind in work.__mro__:
            if kind not in self.seen:
                self.seen.add(kind)
                for name in WAITS:
                    if name in vars(kind):
                        self.replace(kind, name, self.waiting(getattr(kind, name)))

    def waiting(self, original):
        def method(work, *args, **kwargs):
            known = self.given.get(id(work))
            if known and known[0] is work:
                self.waited(known[1])
            with _disable_current_modes():  # what the backend copies is no work of the program's
                return original(work, *args, **kwargs)

        return method
