"""Names for memory: a storage has a number for as long as it lives, a tensor is byte ranges of
one."""

from torch.multiprocessing.reductions import StorageWeakRef

PIECES = 256


class Storages:
    """Numbers of storages. A number is never used again, though an address may be."""

    def __init__(self):
        self.known, self.count = {}, 0

    def number(self, tensor):
        """None for a tensor without memory of its own."""
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):
            return None
        known = self.known.get(storage._cdata)
        if known is None or known[0].expired():
            self.count += 1
            known = self.known[storage._cdata] = (StorageWeakRef(storage), self.count)
        return known[1]


def pieces(tensor):
    """[(first byte, bytes)]: where a tensor's elements lie in its storage. None where they lie in
    more than PIECES places: nothing is said of such a tensor."""
    size = tensor.element_size()
    if tensor.numel() == 0:
        return []
    runs, width = [tensor.storage_offset()], 1
    dims = sorted(zip(tensor.stride(), tensor.shape))
    for stride, n in dims:
        if n == 1 or stride == 0:
            continue
        if stride == width and len(runs) == 1:
            width *= n
        elif len(runs) * n > PIECES:
            return None
        else:
            runs = [r + k * stride for r in runs for k in range(n)]
    return [(r * size, width * size) for r in sorted(runs)]


def buffers(storages, tensors):
    """[(storage, first byte, bytes)] of several tensors."""
    out = []
    for t in tensors:
        number = storages.number(t)
        for at, n in (pieces(t) or []) if number is not None else []:
            if (number, at, n) not in out:
                out.append((number, at, n))
    return out
