"""FSDP2's own operators, which move shards into and out of flat buffers: as what they do to
memory."""

from ..errors import CaptureError
from .memory import count, joined


def record(recorder, func, name, args, kwargs):
    given = {a.name: v for a, v in zip(func._schema.arguments, args)}
    given.update(kwargs)
    handler = HANDLERS.get(name)
    if handler is None:
        raise CaptureError("%s has no place in a capture of ranks yet" % func.name())
    said = handler(recorder.memory, recorder.graph, given)
    out = func(*args, **kwargs)
    said(out)
    return out


def copy_in(memory, graph, g):
    """This rank's shards, one after another, at its place in the buffer. A shard that is padded is
    one value with its padding, as those of other ranks are one."""
    parts = []
    for t in g["all_gather_inputs"]:
        mine = memory.parts(t)
        if len(mine) > 1:
            value = graph.put_together(mine, None, t.dtype)
            mine = [(value, 0, count(value.shape))]
        parts += mine
    n, rank = g["all_gather_input_numel"], g["rank"]

    def write(out):
        memory.write_parts(g["all_gather_output"].narrow(0, n * rank, n), parts)

    return write


def copy_out(memory, graph, g):
    """Of the buffer's rows, a rank's each, the columns that belong to each parameter."""
    flat, sizes, dim = g["all_gather_output"], g["all_gather_input_split_sizes"], g.get("dim", 0)
    at, found = 0, []
    for size in sizes:
        found.append(memory.parts(flat.narrow(dim, at, size)))
        at += size

    def write(_):
        for t, parts in zip(g["out"], found):
            memory.write_parts(t, parts)

    return write


def chunk_cat(memory, graph, g):
    """Part k of each tensor's dimension, padded with zeros, in row k, in the buffer's dtype."""
    out, chunks = g["out"], g["num_chunks"]
    if g["dim"] != 0:
        raise CaptureError("fsdp::chunk_cat along dimension %d is not recorded" % g["dim"])
    rows = [[] for _ in range(chunks)]
    for t in g["tensors"]:
        value, step = graph.cast(memory.read(t), out.dtype), -(-t.shape[0] // chunks)
        missing = (chunks * step - t.shape[0],) + tuple(t.shape[1:])
        if missing[0]:
            value = graph.cat([value, graph.zeros(missing, out.dtype)])
        size = step * count(t.shape[1:])
        for k in range(chunks):
            rows[k].append((value, k * size, (k + 1) * size))

    def write(_):
        width = out.numel() // chunks
        for k in range(chunks):
            memory.write_parts(out.view(-1).narrow(0, k * width, width), joined(rows[k]))

    return write


HANDLERS = {
    "all_gather_copy_in": copy_in,
    "split_with_sizes_copy": copy_out,
    "chunk_cat": chunk_cat,
}
