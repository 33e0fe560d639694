"""c10d's operators as events: who takes part, what goes in and what comes out."""

import torch
import torch.distributed as dist

from ..errors import CaptureError

# Of each operator: the event, and the arguments that are the results and the inputs.
OPERATORS = {
    "send": ("send", None, 0),
    "recv_": ("recv", 0, None),
    "allreduce_": ("all_reduce", 0, 0),
    "allreduce_coalesced_": ("all_reduce", 0, 0),
    "broadcast_": ("broadcast", 0, 0),
    "reduce_": ("reduce", 0, 0),
    "allgather_": ("all_gather", 0, 1),
    "allgather_coalesced_": ("all_gather", 0, 1),
    "allgather_into_tensor_coalesced_": ("all_gather", 0, 1),
    "_allgather_base_": ("all_gather", 0, 1),
    "reduce_scatter_": ("reduce_scatter", 0, 1),
    "reduce_scatter_tensor_coalesced_": ("reduce_scatter", 0, 1),
    "_reduce_scatter_base_": ("reduce_scatter", 0, 1),
    "alltoall_": ("all_to_all", 0, 1),
    "alltoall_base_": ("all_to_all", 0, 1),
    "gather_": ("gather", 0, 1),
    "scatter_": ("scatter", 0, 1),
    "barrier": ("barrier", None, None),
}
FUNCTIONAL = {
    "all_reduce": "all_reduce",
    "all_reduce_coalesced": "all_reduce",
    "all_gather_into_tensor": "all_gather",
    "all_gather_into_tensor_coalesced": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "all_to_all_single": "all_to_all",
    "broadcast": "broadcast",
}
REDUCING = ("all_reduce", "reduce_scatter", "reduce")
REDUCTIONS = "sum avg product min max band bor bxor premul_sum".split()  # as c10d numbers them
AROUND_ROOT = ("broadcast_", "reduce_", "gather_", "scatter_")


def flat(x):
    """The tensors of nested lists."""
    if isinstance(x, torch.Tensor):
        return [x]
    return [t for e in x for t in flat(e)] if isinstance(x, (list, tuple)) else []


def count(tensors):
    return sum(t.numel() for t in tensors)


def named(func, args, kwargs):
    """All arguments by the schema's names."""
    out = {}
    for k, a in enumerate(func._schema.arguments):
        if k < len(args):
            out[a.name] = args[k]
        elif a.name in kwargs or a.has_default_value():
            out[a.name] = kwargs.get(a.name, a.default_value)
    return out


class Posted:
    """One operation: its event but for buffers, the tensors, and the group's ranks."""

    def __init__(self, event, results, inputs, group):
        self.event, self.results, self.inputs, self.group = event, results, inputs, group


def sized(event, results, inputs):
    """Sizes as docs/events.md has them: what goes in, and what comes out where that differs."""
    tensors = inputs or results
    if event["op"] == "recv":
        tensors = results
    if tensors:
        event["numel"] = count(tensors)
        event["dtype"] = str(tensors[0].dtype).replace("torch.", "")
    if event["op"] in ("all_gather", "reduce_scatter", "all_to_all"):
        event["out_numel"] = count(results)


def splits(event, name, results, inputs, given):
    """The sizes of the parts, where they are said one by one."""
    if name == "alltoall_base_":
        row_in, row_out = (max(1, count(t) // max(1, t[0].shape[0])) for t in (inputs, results))
        into = [n * row_in for n in given["input_split_sizes"]]
        out = [n * row_out for n in given["output_split_sizes"]]
    elif name == "alltoall_":
        into, out = [t.numel() for t in inputs], [t.numel() for t in results]
    elif name == "allgather_":
        into, out = [], [t.numel() for t in results]
    else:
        return
    if into and event["op"] == "all_to_all":
        event["in_splits"] = into
    if out and (event["op"] == "all_to_all" or len(set(out)) > 1):
        event["out_splits"] = out


def posted(func, args, kwargs):
    """The communication of a c10d operator. None: it does not communicate."""
    name = func._schema.name.split("::")[1]
    if name == "recv_any_source_":
        raise CaptureError(
            "the program receives from any rank, whichever sends first: what it does is decided "
            "as it runs, and no record says what else it could do"
        )
    if name not in OPERATORS:
        return None
    op, out, into = OPERATORS[name]
    given = named(func, args, kwargs)
    group = dist.ProcessGroup.unbox(given["process_group"])
    ranks = dist.get_process_group_ranks(group)
    values = list(given.values())
    results = flat(values[out]) if out is not None else []
    inputs = flat(values[into]) if into is not None else []
    event = {"op": op, "group": group_key(group, ranks)}
    if op in ("send", "recv"):
        event["peer"] = ranks[given["dst" if op == "send" else "src"]]
        event["tag"] = given["tag"]
    if name in AROUND_ROOT:
        event["root"] = ranks[given["root_rank"]]
    if op in REDUCING:
        reduce = given["reduce_op"]
        event["reduce"] = REDUCTIONS[int(reduce.op() if hasattr(reduce, "op") else reduce)]
    sized(event, results, inputs)
    splits(event, name, results, inputs, given)
    return Posted(event, results, inputs, ranks)


def functional(func, args, kwargs, result):
    """The same of the operators that return their results."""
    name = func._schema.name.split("::")[1].rstrip("_")
    if name not in FUNCTIONAL:
        return None
    given = named(func, args, kwargs)
    group = given["group_name"]
    if isinstance(group, str):
        group = torch._C._distributed_c10d._resolve_process_group(group)
    ranks = dist.get_process_group_ranks(group)
    event = {"op": FUNCTIONAL[name], "group": group_key(group, ranks)}
    if "reduce_op" in given:
        event["reduce"] = given["reduce_op"].lower()
    if "src" in given:
        event["root"] = ranks[given["src"]]
    inputs, results = flat(args), flat(result)
    sized(event, results, inputs)
    if name == "all_to_all_single":
        sizes = {
            "input_split_sizes": [int(n) for n in given["input_split_sizes"]],
            "output_split_sizes": [int(n) for n in given["output_split_sizes"]],
        }
        splits(event, "alltoall_base_", results, inputs, sizes)
    return Posted(event, results, inputs, ranks)


def group_key(group, ranks):
    """A group's key: the name that all its members know, then that which a user gave it."""
    said = group.group_desc
    return [group.group_name, said if said not in (None, "undefined", "default_pg") else "", ranks]
