"""Ranks' recordings as one graph: collectives meet by group and order, messages by sender,
receiver, tag and order, and a schedule disappears in dataflow. What cannot be joined is said."""

from ..errors import CaptureError
from .memory import count


class Rank:
    def __init__(self, r, recording):
        self.r, self.nodes = r, recording["nodes"]
        self.at, self.groups = 0, {}  # the next node; collectives that each group has had
        self.names = {}  # a rank's id to the joined graph's; None while it is under way
        self.posted = set()  # communication
        self.items = {}  # what is taken from that: from which, and its place there
        self.shapes = {n["id"]: n["outputs"][0] for n in self.nodes if len(n["outputs"]) == 1}

    def name(self, id):
        """The joined graph's id; None while it is under way."""
        if id not in self.items:
            return self.names.get(id)
        owner, k = self.items[id]
        return self.names[owner][k] if self.names[owner] else None


def dim_of(node, at=1, rank=None):
    """The dimension that an operator names, or the first."""
    dim = node["args"][at] if len(node["args"]) > at else node["kwargs"].get("dim", 0)
    return dim % (rank or len(node["outputs"][0]["shape"]))


def is_ref(x):
    return isinstance(x, dict) and "ref" in x


def refs(node):
    """The nodes that a node reads."""
    out, todo = [], [node.get("args", []), list(node.get("kwargs", {}).values())]
    while todo:
        x = todo.pop()
        if is_ref(x):
            out.append(x["ref"])
        elif isinstance(x, list):
            todo += x
    return out


class Join:
    def __init__(self, recordings):
        self.ranks = [Rank(r, each) for r, each in enumerate(recordings)]
        self.one = len(recordings) == 1
        self.nodes, self.waiting, self.messages, self.ids = [], {}, {}, set()
        self.known, self.turned = {}, {}

    def made(self, id):
        for n in self.nodes[len(self.known) :]:
            self.known[n["id"]] = n
        return self.known[id]

    def rename(self, rank, x):
        if is_ref(x):
            return {"ref": rank.name(x["ref"])}
        if isinstance(x, list):
            return [self.rename(rank, e) for e in x]
        return x

    def run(self):
        """Ranks in turn, each until it needs a value that is not there yet."""
        moved = True
        while moved:
            moved = False
            for rank in self.ranks:
                while rank.at < len(rank.nodes) and self.step(rank):
                    rank.at += 1
                    moved = True
        self.refuse_leftovers()
        return self.nodes

    def step(self, rank):
        """Whether the rank's next node could be done."""
        node = rank.nodes[rank.at]
        if node["op"] == "getitem" and node["args"][0]["ref"] in rank.posted:
            rank.items[node["id"]] = (node["args"][0]["ref"], node["args"][1])
            return True
        if any(rank.name(ref) is None for ref in refs(node)):
            return False
        if node["op"].startswith("comm::"):
            rank.posted.add(node["id"])
            self.comm(rank, node)
            return True
        turned = node["op"] == "aten::cat" and self.gathered(rank, node)
        if turned:
            rank.names[node["id"]] = turned
            return True
        made = dict(node, id=self.id(rank, node["id"]))
        if "name" in made:
            made["name"] = node["name"] if self.one else "rank%d.%s" % (rank.r, node["name"])
        if "args" in made:
            made["args"] = self.rename(rank, node["args"])
            made["kwargs"] = {k: self.rename(rank, v) for k, v in node["kwargs"].items()}
        self.nodes.append(made)
        rank.names[node["id"]] = made["id"]
        return True

    def gathered(self, rank, node):
        """What is gathered along the first dimension, cut into the ranks' parts and put together
        along another is gathered along that one. The id of such a node, or None."""
        dim = dim_of(node)
        base, along = self.cut([rank.name(a["ref"]) for a in node["args"][0]])
        whole = self.made(base) if base else {}
        if whole.get("op") != "dist::all_gather" or whole["args"][1] or along or dim == 0:
            return None
        if len(node["args"][0]) != len(whole["args"][0]):
            return None
        if (base, dim) not in self.turned:
            args = [whole["args"][0], dim]
            made = self.emit(rank, node, 0, "dist::all_gather", args, node["outputs"])
            self.turned[base, dim] = made
        return self.turned[base, dim]

    def cut(self, parts):
        """The tensor of which these are all the parts of one size, in their order, and along which
        dimension; or (None, None)."""
        nodes = [self.made(p) for p in parts]
        if all(n["op"] == "aten::slice.Tensor" for n in nodes):
            base, dim = nodes[0]["args"][0]["ref"], nodes[0]["args"][1]
            step = self.made(base)["outputs"][0]["shape"][dim] // len(parts)
            want = [[{"ref": base}, dim, k * step, (k + 1) * step] for k in range(len(parts))]
            whole = step * len(parts) == self.made(base)["outputs"][0]["shape"][dim]
            return (base, dim) if whole and [n["args"] for n in nodes] == want else (None, None)
        owner = nodes[0]["args"][0].get("ref") if nodes[0]["op"] == "getitem" else None
        split = self.made(owner) if owner else {}
        if split.get("op") != "aten::split.Tensor" or len(split["outputs"]) != len(parts):
            return None, None
        same = all(o == split["outputs"][0] for o in split["outputs"])
        want = [[{"ref": owner}, k] for k in range(len(parts))]
        if not same or [n["args"] for n in nodes] != want:
            return None, None
        return split["args"][0]["ref"], dim_of(split, 2, len(split["outputs"][0]["shape"]))

    def scattered(self, operands):
        """What ranks cut along a dimension and put together along the first, for a collective that
        scatters that one, is scattered along the other: the operands, and the dimension."""
        found = []
        for o in operands:
            n = self.made(o["ref"])
            cat = n["op"] == "aten::cat" and dim_of(n) == 0
            base = self.cut([a["ref"] for a in n["args"][0]]) if cat else (None, None)
            if base[0] is None or len(n["args"][0]) != len(operands):
                return operands, 0
            found.append(base)
        if len({dim for _, dim in found}) > 1:
            return operands, 0
        return [{"ref": base} for base, _ in found], found[0][1]

    def id(self, rank, id):
        return id if self.one else "r%d_%s" % (rank.r, id)

    # communication

    def comm(self, rank, node):
        """Posts what a rank says. It goes on until it reads what it does not have yet."""
        kind, said = node["op"][len("comm::") :], node["comm"]
        rank.names[node["id"]] = None
        if kind in ("send", "receive"):
            ends = (rank.r, said["peer"]) if kind == "send" else (said["peer"], rank.r)
            there = self.messages.setdefault(ends + (said["tag"],), {"send": [], "receive": []})
            there[kind].append((rank, node))
            if there["send"] and there["receive"]:
                self.deliver(*there["send"].pop(0), *there["receive"].pop(0))
            return
        group = tuple(said["group"])
        mine = rank.groups[group] = rank.groups.get(group, -1) + 1
        there = self.waiting.setdefault((group, mine), {})
        there[rank.r] = node
        if len(there) == len(group):
            del self.waiting[group, mine]
            self.meet(group, [there[r] for r in group], mine)

    def deliver(self, sender, sent, receiver, received):
        ref = sent["args"][0][0]["ref"]
        shape, expected = sender.shapes[ref], received["outputs"][0]
        if shape != expected:
            raise CaptureError(
                "rank %d sends %s and rank %d expects %s (tag %d)"
                % (sender.r, text(shape), receiver.r, text(expected), sent["comm"]["tag"])
            )
        receiver.names[received["id"]] = [sender.name(ref)]

    def meet(self, group, nodes, position):
        """All of a group's ranks are there."""
        first = nodes[0]
        for r, node in zip(group, nodes):
            for what in ("op", "comm"):
                if node[what] != first[what]:
                    raise CaptureError(
                        "collective %d of group %s: rank %d calls %s, rank %d %s"
                        % (position, list(group), group[0], called(first), r, called(node))
                    )
            if first["op"] != "comm::all_to_all" and node["outputs"] != first["outputs"]:
                raise CaptureError(
                    "collective %d of group %s: rank %d has %s, rank %d %s"
                    % (position, list(group), group[0], texts(first), r, texts(node))
                )
        ranks = [self.ranks[r] for r in group]
        for rank, node in zip(ranks, nodes):
            rank.names[node["id"]] = []
        kind = first["op"][len("comm::") :]
        getattr(self, kind)(ranks, nodes, first["comm"])

    def operands(self, ranks, nodes, j):
        return [{"ref": rank.name(n["args"][0][j]["ref"])} for rank, n in zip(ranks, nodes)]

    def emit(self, rank, like, j, op, args, outputs):
        base = "%s_part%d" % (self.id(rank, like["id"]), j)
        id, k = base, 0
        while id in self.ids:
            k += 1
            id = "%s_%d" % (base, k)
        self.ids.add(id)
        keep = {key: like[key] for key in ("scope", "source") if key in like}
        node = {"id": id, "op": op, "args": args, "kwargs": {}, "outputs": outputs}
        self.nodes.append(dict(node, **keep))
        return id

    def all_reduce(self, ranks, nodes, said):
        for j, out in enumerate(nodes[0]["outputs"]):
            given = self.operands(ranks, nodes, j)
            id = self.emit(ranks[0], nodes[0], j, "dist::all_reduce", [given, said["op"]], [out])
            for rank, n in zip(ranks, nodes):
                rank.names[n["id"]].append(id)

    def all_gather(self, ranks, nodes, said):
        for j, out in enumerate(nodes[0]["outputs"]):
            given = self.operands(ranks, nodes, j)
            id = self.emit(ranks[0], nodes[0], j, "dist::all_gather", [given, 0], [out])
            for rank, n in zip(ranks, nodes):
                rank.names[n["id"]].append(id)

    def reduce_scatter(self, ranks, nodes, said):
        for j, out in enumerate(nodes[0]["outputs"]):
            given = self.operands(ranks, nodes, j)
            given, dim = self.scattered(given)
            args = [given, said["op"], dim]
            id = self.emit(ranks[0], nodes[0], j, "dist::reduce_scatter", args, [out] * len(ranks))
            for k, (rank, n) in enumerate(zip(ranks, nodes)):
                got = self.emit(rank, n, j, "getitem", [{"ref": id}, k], [out])
                rank.names[n["id"]].append(got)

    def broadcast(self, ranks, nodes, said):
        source = [rank.r for rank in ranks].index(said["source"])
        for j in range(len(nodes[0]["outputs"])):
            given = self.operands(ranks, nodes, j)[source]["ref"]
            for rank, n in zip(ranks, nodes):
                rank.names[n["id"]].append(given)

    def all_to_all(self, ranks, nodes, said):
        for k, (rank, n) in enumerate(zip(ranks, nodes)):
            for i, (other, theirs) in enumerate(zip(ranks, nodes)):
                ref, out = theirs["args"][0][k]["ref"], n["outputs"][i]
                given = other.name(ref)
                if other.shapes[ref] != out and size(other.shapes[ref]) == size(out):
                    args = [{"ref": given}, out["shape"]]
                    given = self.emit(rank, n, i, "aten::reshape", args, [out])
                elif other.shapes[ref] != out:
                    raise CaptureError(
                        "all_to_all: rank %d sends %s to rank %d, which expects %s"
                        % (other.r, text(other.shapes[ref]), rank.r, text(out))
                    )
                rank.names[n["id"]].append(given)

    def barrier(self, ranks, nodes, said):
        pass

    # what is left over

    def refuse_leftovers(self):
        said = []
        for (group, position), there in sorted(self.waiting.items()):
            for r in group:
                if r not in there:
                    who = min(there)
                    said.append(
                        "rank %d never comes to collective %d of group %s, where rank %d calls %s%s"
                        % (r, position, list(group), who, called(there[who]), at(there[who]))
                    )
        for (source, to, tag), there in sorted(self.messages.items()):
            for kind, words in (
                ("send", "what rank %d sends to rank %d (tag %d) is never received"),
                ("receive", "rank %d never sends what rank %d waits for (tag %d)"),
            ):
                if there[kind]:
                    said.append(words % (source, to, tag) + at(there[kind][0][1]))
        if not said and any(rank.at < len(rank.nodes) for rank in self.ranks):
            said.append("a rank reads what is computed later")
        if said:
            raise CaptureError("the ranks do not fit together: " + "; ".join(said[:4]))


def at(node):
    return " (%s)" % node["source"] if "source" in node else ""


def called(node):
    op = node["comm"].get("op")
    return node["op"][len("comm::") :] + ("(%s)" % op if op else "")


def size(output):
    return output["dtype"], count(output["shape"])


def text(output):
    return "%s %s" % (output["dtype"], output["shape"])


def texts(node):
    return ", ".join(text(o) for o in node["outputs"]) or "nothing"


def prune(nodes, outputs):
    """Without nodes that no output needs; leaves of those go too, but for inputs."""
    by_id, needed, todo = {n["id"]: n for n in nodes}, set(), [o["ref"] for o in outputs]
    while todo:
        id = todo.pop()
        if id not in needed:
            needed.add(id)
            todo += refs(by_id[id])
    return [n for n in nodes if n["id"] in needed or n["op"] == "input"]
