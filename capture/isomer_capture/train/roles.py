"""Ranks that run one program as one: a graph of version 3 (docs/capture-format.md). Nothing of the
package is needed here, and no PyTorch."""

OF_ALL = ("dist::all_reduce", "dist::all_gather", "dist::reduce_scatter")


class NotOne(Exception):
    """The ranks are not one role, and why."""


def rank_of(name):
    """(rank, the name behind it) of a leaf of one rank, else (None, name)."""
    word, dot, rest = name.partition(".")
    is_rank = dot and word[:4] == "rank" and word[4:].isdigit()
    return (int(word[4:]), rest) if is_rank else (None, name)


def is_collective(node):
    return node["op"].startswith("dist::")


class Image:
    """What one rank has in the place of the first's nodes."""

    def __init__(self, nodes, r):
        self.nodes, self.r, self.of = nodes, r, {}

    def give(self, a, b):
        if self.of.setdefault(a, b) != b:
            raise NotOne("%s has two counterparts on rank %d" % (a, self.r))

    def same(self, a, b, at):
        """Arguments: the same, but for what they refer to."""
        if isinstance(a, dict) and isinstance(b, dict) and "ref" in a and "ref" in b:
            self.give(a["ref"], b["ref"])
        elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            for x, y in zip(a, b):
                self.same(x, y, at)
        elif type(a) is not type(b) or a != b:
            raise NotOne("%s is another on rank %d" % (at["id"], self.r))

    def collective(self, a, b, world):
        if a is not b or a["op"] not in OF_ALL or len(a["args"][0]) != world:
            raise NotOne("%s is no collective of all ranks" % a["id"])
        self.give(a["args"][0][0]["ref"], a["args"][0][self.r]["ref"])

    def leaf(self, a, b):
        (first, name), (r, other) = rank_of(a["name"]), rank_of(b["name"])
        same = a is b if first is None else (first, r, name) == (0, self.r, other)
        if not same or (a["op"], a["outputs"], a.get("domain")) != (
            b["op"],
            b["outputs"],
            b.get("domain"),
        ):
            raise NotOne("%s is another leaf on rank %d" % (a["name"], self.r))

    def share(self, a, b):
        """Result 0 of a collective, and result r."""
        if a["args"] != [b["args"][0], 0] or b["args"][1] != self.r:
            raise NotOne("%s is another part on rank %d" % (a["id"], self.r))
        self.give(a["args"][0]["ref"], b["args"][0]["ref"])

    def node(self, a, world):
        b = self.nodes[self.of[a["id"]]]
        if ("args" in a) != ("args" in b) or a["op"] != b["op"]:
            raise NotOne("%s is another on rank %d" % (a["id"], self.r))
        if "args" not in a:
            self.leaf(a, b)
        elif is_collective(a):
            self.collective(a, b, world)
        elif a["op"] == "getitem" and is_collective(self.nodes[a["args"][0]["ref"]]):
            self.share(a, b)
        else:
            for key in ("outputs", "functionalized", "attributes"):
                if a.get(key) != b.get(key):
                    raise NotOne("%s is another on rank %d" % (a["id"], self.r))
            self.same(a["args"], b["args"], a)
            kwargs, others = a.get("kwargs", {}), b.get("kwargs", {})
            keys = sorted(set(kwargs) | set(others))
            self.same([kwargs.get(k) for k in keys], [others.get(k) for k in keys], a)


def images(graph, world):
    """By rank, what it has in the place of each node that the first one needs."""
    nodes = {n["id"]: n for n in graph["nodes"]}
    outputs = graph["outputs"]
    n = len(outputs) // world
    if n * world != len(outputs) or not n:
        raise NotOne("not all ranks give the same outputs")
    by_name = len(outputs) > 1 and outputs[1]["name"] == outputs[0]["name"] + "_rank1"
    out, needed = [], graph["nodes"]
    for r in range(world):
        image = Image(nodes, r)
        for j in range(n):
            a = outputs[j * world if by_name else j]
            b = outputs[j * world + r if by_name else r * n + j]
            if b["name"] != (a["name"] + "_rank%d" % r if r else a["name"]):
                raise NotOne("rank %d gives no %s" % (r, a["name"]))
            image.give(a["ref"], b["ref"])
        for a in reversed(needed):
            if a["id"] in image.of:
                image.node(a, world)
        out.append(image.of)
        needed = [n for n in needed if n["id"] in out[0]]
    own = [outputs[j * world if by_name else j] for j in range(n)]
    return out, own


def renamed(x, ids):
    if isinstance(x, dict):
        return {"ref": ids[x["ref"]]} if "ref" in x else x
    return [renamed(e, ids) for e in x] if isinstance(x, list) else x


def fresh(id, taken):
    own, k = id[3:] if id.startswith("r0_") else id, 0
    while own in taken:
        own, k = "%s_%d" % (id, k), k + 1
    taken.add(own)
    return own


def program(graph, needed):
    """The nodes of one rank, and their ids by those that they had."""
    nodes, ids, taken, out = {n["id"]: n for n in graph["nodes"]}, {}, set(), []
    for n in graph["nodes"]:
        if n["id"] not in needed:
            continue
        owner = nodes[n["args"][0]["ref"]] if n["op"] == "getitem" else n
        if owner is not n and is_collective(owner):
            ids[n["id"]] = ids[owner["id"]]
            continue
        ids[n["id"]] = fresh(n["id"], taken)
        own = dict(n, id=ids[n["id"]])
        if "name" in n:
            own["name"] = rank_of(n["name"])[1]
        if "args" in n:
            args = [n["args"][0][:1]] + n["args"][1:] if is_collective(n) else n["args"]
            own["args"] = renamed(args, ids)
        if n.get("kwargs"):
            own["kwargs"] = {k: renamed(v, ids) for k, v in n["kwargs"].items()}
        if is_collective(n):
            own["outputs"] = n["outputs"][:1]
        out.append(own)
    return out, ids


def as_roles(graph, leaves, world, same):
    """(the graph as version 3 has it, the tensors that it needs): `leaves` by name; `same`: whether
    two of them are one. Raises NotOne."""
    if world < 2:
        raise NotOne("there is one rank")
    of, outputs = images(graph, world)
    nodes = {n["id"]: n for n in graph["nodes"]}
    one, ids = program(graph, set(of[0]))
    own, kept, seen = [], {}, set()
    for a in of[0]:
        if "name" not in nodes[a]:
            continue
        name = rank_of(nodes[a]["name"])[1]
        theirs = [nodes[image[a]]["name"] for image in of]
        if name in seen or rank_of(name)[0] is not None:
            raise NotOne("two leaves may be called %s" % name)
        seen.add(name)
        if all(same(leaves[theirs[0]], leaves[t]) for t in theirs):
            kept[name] = leaves[theirs[0]]
        else:
            own.append(name)
            kept.update(("rank%d.%s" % (r, name), leaves[t]) for r, t in enumerate(theirs))
    out = dict(graph, version=3, roles={"ranks": world, "own": sorted(own)}, nodes=one)
    out["outputs"] = [{"name": o["name"], "ref": ids[o["ref"]]} for o in outputs]
    return out, kept
