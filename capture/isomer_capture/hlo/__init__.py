"""XLA's HLO text as a capture: `isomer-capture hlo FILE -o OUT` (docs/hlo.md).

    text.py      the text as computations of instructions
    program.py   each instruction as ATen operators, for every rank; calls and loops in place
    spmd.py      collectives          sharding.py    who holds what; relations
    regions.py   what called computations of scalars do
    elementwise.py, shapes.py, reductions.py, indexing.py, linear.py    operators
    build.py     values and the graph that is written

The text has no values: leaves get those of --values, else drawn ones, the same for the same
parameter of a partitioned and an unpartitioned module."""

import os
import re

import torch

from ..errors import CaptureError
from ..files import read_safetensors, write_capture
from . import sharding
from .build import DTYPES, Builder, Unsupported, Writer, product
from .program import Program
from .spmd import COLLECTIVES
from .text import HloError, Shape, read_file

MAX_ELEMENTS = 1 << 33  # of a parameter


def number(module, key):
    text = module.attributes.get(key, "1")
    if not text.isdigit() or not 1 <= int(text) <= sharding.MAX_DEVICES:
        raise CaptureError("%s: %s=%s is no number of ranks" % (module.path, key, text[:20]))
    return int(text)


def is_partitioned(module):
    """A module before the partitioner says num_partitions already, with the sizes of the whole: its
    instructions are annotated, and none of them exchanges anything."""
    annotated = exchanges = False
    for c in module.computations.values():
        for i in c.instructions:
            base = i.opcode.removesuffix("-start")
            exchanges |= base in COLLECTIVES or i.opcode == "partition-id"
            annotated |= i.opcode != "parameter" and "sharding" in i.attributes
    return exchanges or not annotated


def ranks_of(module):
    """(ranks, whether they are partitions and not replicas)"""
    partitions, replicas = number(module, "num_partitions"), number(module, "replica_count")
    if partitions > 1 and not is_partitioned(module):
        partitions = 1
    if partitions > 1 and replicas > 1:
        raise CaptureError("%s: replicas of partitions are not read" % module.path)
    return max(partitions, replicas), partitions > 1


# ---- leaves ----


def plain_name(i):
    """`x` of `x.1`, or what the framework calls the parameter."""
    said = i.metadata.get("op_name", "")
    return said if said and "/" not in said else re.sub(r"\.\d+$", "", i.name)


def leaf_names(module):
    names = [plain_name(i) for i in module.entry.parameters]
    return [n if names.count(n) == 1 else "%s.%d" % (n, k) for k, n in enumerate(names)]


def flat_parameters(module):
    """Parameters, which must be arrays."""
    for i in module.entry.parameters:
        if not isinstance(i.shape, Shape) or i.shape.dtype not in DTYPES:
            raise HloError(module.path, i.line, i.name, "a parameter that is no array of numbers")
    return module.entry.parameters


class Leaves:
    """The parameters' values and places. `whole`: the module before it was partitioned, or None."""

    def __init__(self, module, whole, ranks, options):
        self.module, self.ranks, self.options = module, ranks, options
        self.given = read_safetensors(options.values) if options.values else {}
        self.parameters = flat_parameters(module)
        self.names = leaf_names(whole or module)
        if len(self.names) != len(self.parameters):
            raise CaptureError(
                "%s has %d parameters, %s has %d"
                % (module.path, len(self.parameters), whole.path, len(self.names))
            )
        self.whole = flat_parameters(whole) if whole else None
        self.ranges = {name: (int(low), int(high)) for name, low, high in options.ranges}
        for name in list(self.ranges) + options.inputs:
            if name not in self.names:
                raise CaptureError(
                    "%s has no parameter %s; it has %s"
                    % (module.path, name, ", ".join(self.names)[:200])
                )

    def sharding(self, k):
        i = self.parameters[k]
        said = i.attributes.get("sharding") if self.ranks > 1 else None
        try:
            return sharding.parse_sharding(said, len(i.shape.sizes), self.ranks)
        except (Unsupported, ValueError) as e:
            raise HloError(self.module.path, i.line, i.name, str(e)) from None

    def sizes(self, k, cut):
        """Of the whole parameter."""
        local = self.parameters[k].shape.sizes
        if self.whole is None:
            return tuple(n * t for n, t in zip(local, cut.tiles))
        sizes = self.whole[k].shape.sizes
        if len(sizes) != len(local) or any(
            -(-n // t) != m for n, t, m in zip(sizes, cut.tiles, local)
        ):
            raise HloError(
                self.module.path,
                self.parameters[k].line,
                self.parameters[k].name,
                "is no part of %s, which has the sizes %s" % (self.whole[k].name, list(sizes)),
            )
        return sizes

    def kind(self, k):
        dtype = DTYPES[self.parameters[k].shape.dtype]
        given = self.names[k] in self.options.inputs
        return "input" if given or not dtype.is_floating_point else "parameter"

    def value(self, k, sizes):
        """The whole tensor: given, or drawn, by the parameter's number alone."""
        dtype, name = DTYPES[self.parameters[k].shape.dtype], self.names[k]
        if product(sizes) > MAX_ELEMENTS:
            i = self.parameters[k]
            raise HloError(self.module.path, i.line, i.name, "has too many elements")
        if name in self.given:
            t = self.given[name]
            if tuple(t.shape) != tuple(sizes) or t.dtype != dtype:
                raise CaptureError(
                    "%s: %s is %s%s, and should be %s%s"
                    % (self.options.values, name, t.dtype, list(t.shape), dtype, list(sizes))
                )
            return t
        g = torch.Generator().manual_seed(self.options.seed * 1000003 + k)
        if dtype.is_floating_point:
            return (torch.randn(sizes, generator=g, dtype=torch.float64) * 0.5).to(dtype)
        low, high = self.ranges.get(name, (0, 1 if dtype == torch.bool else 7))
        return torch.randint(low, high + 1, sizes, generator=g).to(dtype)

    def part(self, t, cut, rank, local):
        """A rank's part, padded with zeros where the sizes do not divide."""
        for d, (n, index) in enumerate(zip(cut.tiles, cut.part_of[rank])):
            begin, end = sharding.part_bounds(t.shape[d], n, index)
            t = t.narrow(d, begin, end - begin)
        out = torch.zeros(local, dtype=t.dtype)
        out[tuple(slice(0, n) for n in t.shape)] = t
        return out

    def add(self, b, k):
        """The leaf that each rank reads: ranks that hold the same part read the same one. Returns:
        values by rank, names by rank."""
        cut, local = self.sharding(k), self.parameters[k].shape.sizes
        whole = self.value(k, self.sizes(k, cut))
        name, held, out, names = self.names[k], {}, {}, {}
        domain = {"range": list(self.ranges[name])} if name in self.ranges else None
        for r in range(self.ranks):
            key = 0 if cut.replicated() else r
            if key not in held:
                own = name if cut.replicated() else "rank%d.%s" % (r, name)
                t = self.part(whole, cut, r, local)
                held[key] = b.leaf(self.kind(k), own, t, domain)
            out[r], names[r] = held[key], held[key].node["name"]
        return out, names

    def relations(self, k, names):
        """A line for each set of replicas."""
        cut = self.sharding(k)
        whole = sharding.assembled(names, self.sizes(k, cut), cut)
        left = "input " if self.kind(k) == "input" else "leaf "
        left += sharding.quoted(self.names[k])
        if whole is None:
            return ["# %s: padded parts" % left]
        return ["%s = %s" % (left, right) for right in whole]


# ---- results ----


def flat(x):
    return [y for e in x for y in flat(e)] if isinstance(x, (tuple, list)) else [x]


def output_names(n):
    return ["output"] if n == 1 else ["output_%d" % k for k in range(n)]


def result_relations(whole, n_ranks):
    """A line for each result, from the root's shardings before the partitioner."""
    root = whole.entry.root
    results = flat(root.shape)
    names, lines = output_names(len(results)), []
    said = sharding.tuple_shardings(root.attributes.get("sharding"), len(results))
    for name, shape, text in zip(names, results, said):
        cut = sharding.parse_sharding(text, len(shape.sizes), n_ranks)
        parts = {r: name + ("_rank%d" % r if r else "") for r in range(n_ranks)}
        replicas = sharding.assembled(parts, shape.sizes, cut)
        if replicas is None:
            raise Unsupported("result %s is padded" % name)
        lines += ["output %s = %s" % (name, right) for right in replicas]
    return lines


def relations_text(module, whole, leaves, names, n_ranks):
    lines = ["# %s, and its parts in %s" % (os.path.basename(whole.path), module.name)]
    for k, n in enumerate(names):
        lines += leaves.relations(k, n)
    try:
        lines += result_relations(whole, n_ranks)
    except (Unsupported, ValueError) as e:
        raise HloError(whole.path, whole.entry.root.line, whole.entry.root.name, str(e)) from None
    return "\n".join(lines) + "\n"


# ---- the command ----


def lower(module, whole, options):
    """(graph, weights, inputs, relations or None)"""
    n_ranks, per_partition = ranks_of(module)
    b = Builder()
    leaves = Leaves(module, whole, n_ranks, options)
    added = [leaves.add(b, k) for k in range(len(leaves.parameters))]
    arguments = {r: [values[r] for values, _ in added] for r in range(n_ranks)}
    program = Program(module, b, n_ranks, per_partition)
    results = program.run(module.entry, arguments, list(range(n_ranks)))
    by_rank = [flat(results[r]) for r in range(n_ranks)]
    writer = Writer()
    used = [v for values, _ in added for v in values.values()]
    writer.needed(used + [v for one in by_rank for v in one])
    outputs = []
    for k, name in enumerate(output_names(len(by_rank[0]))):
        for r, one in enumerate(by_rank):
            label = name + ("_rank%d" % r if r else "")
            outputs.append({"name": label, "ref": writer.resolve(one[k]).id})
    kinds = {n["name"]: n["op"] for n in writer.nodes if "name" in n}
    tensors = {n: t for n, t in b.leaves.items() if n in kinds}
    graph = {
        "format": "isomer-capture",
        "version": 1,
        "model": options.name or module.name,
        "framework": "xla",
        "torch_version": torch.__version__,
        "nodes": writer.nodes,
        "outputs": outputs,
        "metadata": {
            "file": os.path.basename(module.path),
            "ranks": n_ranks,
            "literals": program.literals,
        },
    }
    weights = {n: t for n, t in tensors.items() if kinds[n] != "input"}
    inputs = {n: t for n, t in tensors.items() if kinds[n] == "input"}
    text = None
    if whole is not None:
        text = relations_text(module, whole, leaves, [names for _, names in added], n_ranks)
    return graph, weights, inputs, text


def run(options):
    """Reads options.file, writes the capture and, with --whole, relations.txt into it."""
    module = read_file(options.file)
    whole = read_file(options.whole) if options.whole else None
    graph, weights, inputs, relations = lower(module, whole, options)
    write_capture(options.out, graph, weights, [inputs])
    if relations is not None:
        with open(os.path.join(options.out, "relations.txt"), "w", encoding="utf-8") as f:
            f.write(relations)
    return graph, relations
