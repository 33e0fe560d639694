#!/usr/bin/env python3
"""Make a deeper capture out of a shallow one, by repeating its last layer. Plain Python 3.

    tests/bench/stack.py CAPTURE TO --layers N

Layers are what `scope` and the leaves' names call `layers.K.` or `h.K.`. Layer j >= L (the capture
has L) is a copy of layer L - 1: what that one reads of layer L - 2, the copy reads of layer j - 1,
counted from the layer's end, since a first layer may begin in another way. Its parameters are new:
each element of layer L - 1's is sent through one function that depends on j alone, so that whatever
layout relates the leaves of two captures (fused, sliced, transposed) still relates those of the
deeper ones. Buffers and constants keep their values. Stacking both sides of an equivalent pair
gives an equivalent pair."""

import argparse
import array
import json
import math
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from tensors import read_tensors, write_tensors  # noqa: E402

LAYER = re.compile(r"(^|[._])(layers|h)([._])(\d+)(?=[._]|$)")


def layer_of(text):
    m = LAYER.search(text or "")
    return int(m.group(4)) if m else None


def renumber(text, j):
    return LAYER.sub(lambda m: "%s%s%s%d" % (m.group(1), m.group(2), m.group(3), j), text)


def fresh(tensor, j):
    """The parameter of layer j: of the same sizes and scale, and of other values."""
    dtype, shape, data = tensor
    if dtype not in ("F32", "F64"):
        raise SystemExit("parameters of dtype %s are not made" % dtype)
    a = array.array("f" if dtype == "F32" else "d", data)
    a = array.array(a.typecode, [x * (1 + 0.25 * math.sin(1e5 * j * x)) for x in a])
    return dtype, shape, a.tobytes()


def change_refs(value, new):
    """`value` with every reference and every layer number in its strings replaced."""
    ref, text = new
    if isinstance(value, dict):
        return (
            {"ref": ref(value["ref"])}
            if "ref" in value
            else {k: change_refs(v, new) for k, v in value.items()}
        )
    if isinstance(value, list):
        return [change_refs(v, new) for v in value]
    return text(value) if isinstance(value, str) else value


def copy_of(node, new_id, ref, j):
    n = dict(node, id=new_id)
    for key in "args", "kwargs", "attributes":
        if key in n:
            n[key] = change_refs(n[key], (ref, lambda s: renumber(s, j)))
    for key in "scope", "name":
        if key in n:
            n[key] = renumber(n[key], j)
    return n


def stack(graph, weights, layers):
    """Changes both."""
    nodes = graph["nodes"]
    leaves = [
        n
        for n in nodes
        if "args" not in n and n["op"] in ("parameter", "buffer", "constant", "input")
    ]
    ops = [n for n in nodes if n not in leaves]
    depth = 1 + max(
        (layer_of(n.get("scope")) for n in ops if layer_of(n.get("scope")) is not None), default=-1
    )
    if depth < 2:
        raise SystemExit("a capture of two layers or more is needed")
    block = [[n["id"] for n in ops if layer_of(n.get("scope")) == k] for k in range(depth)]
    top, below = block[-1], block[-2]
    place = {i: len(top) - k for k, i in enumerate(top)}  # from the end
    place_below = {i: len(below) - k for k, i in enumerate(below)}
    by_id = {n["id"]: n for n in nodes}
    top_leaves = [n for n in leaves if layer_of(n.get("name")) == depth - 1]

    def leaf_id(i, j):
        return i if j == depth - 1 else "%s.%d" % (i, j)

    def at(k, j):
        return top[len(top) - k] if j == depth - 1 else "%s.%d" % (top[len(top) - k], j)

    new_leaves, new_ops, own = [], [], {n["id"] for n in top_leaves}
    for j in range(depth, layers):

        def ref(i, j=j):
            if i in own:
                return leaf_id(i, j)
            if i in place:
                return at(place[i], j)
            if i in place_below:
                if (
                    place_below[i] > len(top)
                    or by_id[at(place_below[i], depth - 1)]["op"] != by_id[i]["op"]
                ):
                    raise SystemExit("%s has no counterpart in the last layer" % i)
                return at(place_below[i], j - 1)
            return i

        for n in top_leaves:
            name = renumber(n["name"], j)
            new_leaves.append(dict(n, id=leaf_id(n["id"], j), name=name))
            weights[name] = (
                fresh(weights[n["name"]], j) if n["op"] == "parameter" else weights[n["name"]]
            )
        new_ops += [copy_of(by_id[i], at(place[i], j), ref, j) for i in top]

    last = max(layers, depth) - 1

    def of_last(i):
        return at(place[i], last) if i in place else i

    head, tail, seen = [], [], False
    for n in ops:
        seen = seen or n["id"] == top[-1]
        if n["id"] in place or not seen:
            head.append(n)
        else:
            tail.append(
                dict(
                    n,
                    **{k: change_refs(n[k], (of_last, str)) for k in ("args", "kwargs") if k in n},
                )
            )
    graph["nodes"] = leaves + new_leaves + head + new_ops + tail
    for o in graph["outputs"]:
        o["ref"] = of_last(o["ref"])
    graph["metadata"] = {"made": "%d layers by tests/bench/stack.py" % layers}


def make(capture, to, layers):
    os.makedirs(to)
    graph = json.load(open(os.path.join(capture, "graph.json"), encoding="utf-8"))
    weights = read_tensors(os.path.join(capture, "weights.safetensors"))
    stack(graph, weights, layers)
    write_tensors(os.path.join(to, "weights.safetensors"), weights)
    shutil.copy(os.path.join(capture, "inputs.safetensors"), to)
    with open(os.path.join(to, "graph.json"), "w", encoding="utf-8") as f:
        json.dump(graph, f)


def main():
    a = argparse.ArgumentParser(description="a deeper capture out of a shallow one")
    a.add_argument("capture")
    a.add_argument("to")
    a.add_argument("--layers", type=int, required=True)
    a = a.parse_args()
    make(a.capture, a.to, a.layers)


if __name__ == "__main__":
    main()
