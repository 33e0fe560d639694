"""Defects of parallel training steps, made in the capture of a plan that is right: each as public
reports tell of it, at a place that is drawn. A defect is one change of a joined graph; whether it
changes what the step computes is asked of PyTorch (`differs`).

A defect says the nodes where it is, and by which words a report would name its kind."""

import copy
import json
import os
import re

import torch
from isomer_capture.train import replay
from safetensors.torch import load_file

REDUCTIONS = ("dist::all_reduce", "dist::reduce_scatter")


def refs(x):
    if isinstance(x, dict):
        return {x["ref"]} if "ref" in x else set()
    return set().union(*map(refs, x)) if isinstance(x, list) else set()


def substituted(x, old, new):
    """Arguments with one reference for another."""
    if isinstance(x, dict):
        return {"ref": new} if x.get("ref") == old else x
    return [substituted(e, old, new) for e in x] if isinstance(x, list) else x


def rank_of(name):
    found = re.match(r"r(\d+)_", name)
    return int(found[1]) if found else None


class Plan:
    """A joined graph that is edited."""

    def __init__(self, folder):
        with open(os.path.join(folder, "graph.json")) as f:
            self.graph = json.load(f)
        self.folder = folder
        self.index()

    def copy(self):
        other = copy.copy(self)
        other.graph = copy.deepcopy(self.graph)
        other.index()
        return other

    def index(self):
        self.nodes = self.graph["nodes"]
        self.at = {n["id"]: n for n in self.nodes}
        self.world = 1 + max(rank_of(n["id"]) or 0 for n in self.nodes)

    def readers(self, of):
        return [n for n in self.nodes if of in refs(n.get("args", []))]

    def outputs(self, of):
        return [o for o in self.graph["outputs"] if o["ref"] == of]

    def calls(self, *ops):
        return [n for n in self.nodes if n["op"] in ops]

    def add(self, after, op, args, **kwargs):
        """A node behind another one, with its shape. Returns: its name."""
        like = self.at[after]
        made = {"id": after + "_again", "op": op, "args": args, "kwargs": kwargs}
        made["outputs"] = copy.deepcopy(like["outputs"])
        self.nodes.insert(self.nodes.index(like) + 1, made)
        self.at[made["id"]] = made
        return made["id"]

    def read(self, readers, old, new):
        for n in readers:
            n["args"] = substituted(n["args"], old, new)

    def write(self, folder):
        os.makedirs(folder)
        with open(os.path.join(folder, "graph.json"), "w") as f:
            json.dump(self.graph, f)
        for name in ("inputs.safetensors", "weights.safetensors"):
            os.symlink(os.path.join(os.path.abspath(self.folder), name), os.path.join(folder, name))

    def run(self):
        """The outputs, in float64, of the recorded leaves."""
        values = {}
        for name in ("inputs.safetensors", "weights.safetensors"):
            values.update(load_file(os.path.join(self.folder, name)))
        leaves = {n["id"]: values[n["name"]] for n in self.nodes if "name" in n}
        have = replay.replay(self.nodes, leaves)
        return [have[o["ref"]].double() for o in self.graph["outputs"]]


def differs(right, wrong):
    """Whether the outputs are others, by more than rounding makes of them."""
    for a, b in zip(right.run(), wrong.run()):
        if a.shape != b.shape or not torch.allclose(a, b, rtol=1e-3, atol=1e-5):
            return True
    return False


# ---- where steps have what ----


def gradients(plan):
    """The optimizer's calls by parameter: name to {rank: lerp}."""
    out = {}
    for n in plan.calls("aten::lerp.Scalar"):
        leaf = plan.at[next(iter(refs(n["args"][0])))].get("name", "")
        found = re.match(r"rank(\d+)\.exp_avg\.(.*)", leaf)
        if found:
            out.setdefault(found[2], {})[int(found[1])] = n
    return out


def gradient_of(lerp):
    return lerp["args"][1]["ref"]


def own_parts(reduction):
    """The tensors that ranks give to a reduction, by rank. None: not one of each."""
    out = {}
    for k, part in enumerate(reduction["args"][0]):
        out[rank_of(part["ref"])] = (k, part["ref"])
    return out if len(out) == len(reduction["args"][0]) and None not in out else None


def update_of(plan, lerp):
    """The call that writes the parameter whose first moment this is, and its second moment's."""
    for n in plan.readers(lerp["id"]):
        if n["op"] == "aten::addcdiv":
            return n
    return None


def drawn(rng, of):
    return rng.sample(of, len(of))


# ---- the defects: each is a function of (plan, rng) to the nodes where it is, or None ----


def use_own(plan, n):
    """Each rank goes on with what it gave to a reduction. Returns: the nodes that do."""
    own = own_parts(n)
    if not own:
        return None
    at = {n["id"]} | {ref for _, ref in own.values()}
    for m in plan.readers(n["id"]):
        r = rank_of(m["id"])
        if r not in own:
            return None
        if m["op"] == "getitem":
            rows = m["outputs"][0]["shape"][n["args"][2]]
            k, dim = m["args"][1], n["args"][2]
            # An output of a reduction by parts stands for the rank of its number.
            part = n["args"][0][k]["ref"]
            m["op"] = "aten::slice.Tensor"
            m["args"] = [{"ref": part}, dim, k * rows, (k + 1) * rows]
            m["kwargs"] = {}
        else:
            m["args"] = substituted(m["args"], n["id"], own[r][1])
        at.add(m["id"])
    for o in plan.outputs(n["id"]):
        found = re.search(r"_rank(\d+)$", o["name"])
        r = int(found[1]) if found else min(own)
        if r not in own:
            return None
        o["ref"] = own[r][1]
    return at


def missing_reduction(plan, rng):
    for n in drawn(rng, plan.calls(*REDUCTIONS)):
        at = use_own(plan, n)
        if at:
            return at
    return None


def norm_of_shards(plan, n):
    size = 1
    for d in n["outputs"][0]["shape"]:
        size *= d
    below = {n["id"]}
    for _ in range(4):
        below |= {r for i in below for r in refs(plan.at[i].get("args", []))}
    return size == 1 and any("norm" in plan.at[i]["op"] for i in below)


def local_norm(plan, rng):
    """Clipped by the norm of a rank's own shards."""
    for n in drawn(rng, plan.calls("dist::all_reduce")):
        if norm_of_shards(plan, n):
            return use_own(plan, n)
    return None


def largest(plan, rng):
    """Reduced by the largest."""
    n = rng.choice(plan.calls(*REDUCTIONS))
    n["args"][1] = "max"
    return {n["id"]}


def sum_or_mean(plan, rng):
    n = rng.choice(plan.calls(*REDUCTIONS))
    n["args"][1] = "sum" if n["args"][1] == "avg" else "avg"
    return {n["id"]}


def reduced_twice(plan, rng):
    """A second hook reduces a replica again."""
    n = rng.choice(plan.calls("dist::all_reduce") or [None])
    if not n:
        return None
    readers, outputs = plan.readers(n["id"]), plan.outputs(n["id"])
    again = plan.add(n["id"], n["op"], [[{"ref": n["id"]}] * len(n["args"][0]), "sum"])
    plan.read(readers, n["id"], again)
    for o in outputs:
        o["ref"] = again
    return {n["id"], again}


def own_twice(plan, rng):
    """A collective takes one rank's tensor in another's place."""
    n = rng.choice(plan.calls(*REDUCTIONS))
    n["args"][0][-1] = n["args"][0][0]
    return {n["id"]}


def wrong_group(plan, rng):
    """Halves of a group each reduce their own."""
    for n in drawn(rng, plan.calls("dist::all_reduce")):
        parts, own = n["args"][0], own_parts(n)
        if len(parts) < 4 or not own:
            continue
        half = len(parts) // 2
        readers = [m for m in plan.readers(n["id"]) if own.get(rank_of(m["id"]), (0,))[0] >= half]
        again = plan.add(n["id"], n["op"], [parts[half:], n["args"][1]])
        n["args"][0] = parts[:half]
        plan.read(readers, n["id"], again)
        return {n["id"], again}
    return None


def scaled(plan, rng, by):
    """All ranks' gradient of a parameter, times a number."""
    given = gradients(plan)
    name = rng.choice(sorted(given))
    at = set()
    for gradient in {gradient_of(n) for n in given[name].values()}:
        readers = plan.readers(gradient)
        if any(n["op"].startswith("dist::") for n in readers):
            return None
        again = plan.add(gradient, "aten::mul.Tensor", [{"ref": gradient}, by])
        plan.read(readers, gradient, again)
        at |= {gradient, again}
    return at


def divided_twice(plan, rng):
    return scaled(plan, rng, 1.0 / plan.world)


def not_divided(plan, rng):
    return scaled(plan, rng, float(plan.world))


def neighbours_moments(plan, rng):
    """A shard meets the moments of its neighbour."""
    given = gradients(plan)
    for name in drawn(rng, sorted(given)):
        if len(given[name]) < 2:
            continue
        a, b = sorted(given[name])[:2]
        key = rng.choice(("exp_avg", "exp_avg_sq"))
        leaf = ["r%d_%s.%s" % (r, key, name) for r in (a, b)]
        readers = [plan.readers(x) for x in leaf]
        plan.read(readers[0], leaf[0], leaf[1])
        plan.read(readers[1], leaf[1], leaf[0])
        return {n["id"] for n in readers[0] + readers[1]} | set(leaf)
    return None


def stale(plan, rng):
    """The last rank keeps a parameter as it was."""
    updated = [
        o
        for o in plan.graph["outputs"]
        if o["name"].startswith("updated.") and not re.match(r"updated\.exp_avg", o["name"])
    ]
    o = rng.choice(updated)
    n = plan.at[o["ref"]]
    found = re.search(r"_rank(\d+)$", o["name"])
    r = int(found[1]) if found else 0
    leaf = "r%d_p_%s" % (r, re.sub(r"_rank\d+$", "", o["name"][len("updated.") :]))
    if leaf not in plan.at:
        return None
    o["ref"] = leaf
    return {n["id"], leaf}


def stepped_twice(plan, rng):
    given = gradients(plan)
    name = rng.choice(sorted(given))
    at = set()
    for n in given[name].values():
        update = update_of(plan, n)
        outputs = plan.outputs(update["id"])
        args = [{"ref": update["id"]}] + update["args"][1:]
        again = plan.add(update["id"], update["op"], args, **update["kwargs"])
        plan.read([m for m in plan.readers(update["id"]) if m["id"] != again], update["id"], again)
        for o in outputs:
            o["ref"] = again
        at |= {update["id"], again}
    return at


def later_correction(plan, rng):
    """A parameter's bias is corrected for another step than the others'."""
    given = gradients(plan)
    name = rng.choice(sorted(given))
    at = set()
    for n in given[name].values():
        update = update_of(plan, n)
        update["kwargs"]["value"] *= 0.83
        at.add(update["id"])
    return at


def decay(plan, rng):
    """Weight decay is left out for a parameter."""
    given = gradients(plan)
    name = rng.choice(sorted(given))
    at = set()
    for n in given[name].values():
        update = update_of(plan, n)
        shrunk = plan.at[update["args"][0]["ref"]]
        if shrunk["op"] != "aten::mul.Tensor":
            return None
        update["args"][0] = shrunk["args"][0]
        at |= {update["id"], shrunk["id"]}
    return at


def decay_of_another(plan, rng):
    """A parameter of a group without weight decay has the others', ten times."""
    given = gradients(plan)
    name = rng.choice(sorted(given))
    at = set()
    for n in given[name].values():
        shrunk = plan.at[update_of(plan, n)["args"][0]["ref"]]
        if shrunk["op"] != "aten::mul.Tensor":
            return None
        shrunk["args"][1] = 0.99
        at.add(shrunk["id"])
    return at


def momentum(plan, rng):
    """A parameter's first moment has another decay."""
    given = gradients(plan)
    name = rng.choice(sorted(given))
    for n in given[name].values():
        n["args"][2] = 0.2
    return {n["id"] for n in given[name].values()}


def sums_of_gradients(plan):
    """What adds up gradients of one parameter: those of micro-batches, or of a tied weight's uses.
    Returns: the additions of all ranks, by parameter."""
    out = {}
    for name, of in gradients(plan).items():
        found = set()
        for n in of.values():
            todo = [gradient_of(n)]
            for _ in range(40):
                if not todo:
                    break
                m = plan.at[todo.pop()]
                if m["op"] == "aten::add.Tensor" and len(refs(m["args"][:2])) == 2:
                    found.add(m["id"])
                    continue
                through = ("aten::mul.Tensor", "aten::div.Tensor", "aten::view", "getitem")
                if m["op"] in through or m["op"] in REDUCTIONS:
                    todo += sorted(refs(m["args"][:1]))
        if found:
            out[name] = [plan.at[i] for i in sorted(found)]
    return out


def summand(plan, rng, change):
    sums = sums_of_gradients(plan)
    if not sums:
        return None
    name = rng.choice(sorted(sums))
    for n in sums[name]:
        change(n)
    return {n["id"] for n in sums[name]}


def summand_dropped(plan, rng):
    """A micro-batch's gradient, or that of one use of a tied weight, is left out."""
    at = summand(plan, rng, lambda n: None)
    for i in at or ():
        n = plan.at[i]
        last = n["args"][1]["ref"]
        plan.read(plan.readers(i), i, last)
        for o in plan.outputs(i):
            o["ref"] = last
        at = at | {last}
    return at


def summand_twice(plan, rng):
    def change(n):
        n["args"][0] = n["args"][1]

    return summand(plan, rng, change)


def same_rows(plan, rng):
    """The last rank reads the first one's labels, or ids."""
    r = plan.world - 1
    key = rng.choice(("ids", "labels"))
    first, own = "r0_" + key, "r%d_%s" % (r, key)
    if own not in plan.at or first not in plan.at:
        return None
    readers = plan.readers(own)
    plan.read(readers, own, first)
    return {n["id"] for n in readers} | {own, first}


def gathered_in_another_order(plan, rng):
    n = rng.choice(plan.calls("dist::all_gather") or [None])
    if not n:
        return None
    n["args"][0].reverse()
    return {n["id"]}


def clipped_by_another_norm(plan, rng):
    """The largest norm is twice what it is to be."""
    at = set()
    for n in plan.calls("aten::clamp"):
        m = plan.at[n["args"][0]["ref"]]
        if m["op"] == "aten::mul.Tensor" and isinstance(m["args"][1], float):
            m["args"][1] *= 0.5
            at.add(m["id"])
    return at or None


TIMES = r"times|multiplied|divided|1/\d|value|other is|sum over|would have to be"
# The words by which a report names the kind.
KINDS = {
    missing_reduction: r"missing|adds them up",
    local_norm: r"missing|adds them up",
    largest: r"op is \"max\"",
    sum_or_mean: r"op is|" + TIMES,
    reduced_twice: r"twice|more than once|" + TIMES,
    own_twice: r"twice|should stand",
    wrong_group: r"of one more|rank \d|missing|adds them up",
    divided_twice: TIMES,
    not_divided: TIMES,
    neighbours_moments: r"part that its rank|should hold|reads|exchanged|should stand",
    stale: r"not updated|stale|keeps|reads|is given|as it was",
    stepped_twice: r"twice|again|on the right .* and on the left it is not",
    later_correction: r"value|" + TIMES,
    decay: r"multiplied|times|" + TIMES,
    decay_of_another: r"other is|multiplied|" + TIMES,
    momentum: r"weight is|" + TIMES,
    summand_dropped: r"added|adds|summand|sum",
    summand_twice: r"added|twice|reads|times",
    same_rows: r"twice|reads|rank|part that",
    gathered_in_another_order: r"another order|order",
    clipped_by_another_norm: r"other is|" + TIMES,
}
