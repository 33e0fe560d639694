"""Captures that are malformed in one place each: one line says so, and nothing is written. Part of
tests/cli/e2e.py. Plain Python 3."""

import json
import os
import struct
import tempfile

from harness import case, copy, expect, fails, model, read_graph, refs, write_graph


def change_node(pick, change):
    def run(folder):
        g = read_graph(folder)
        change(next(n for n in g["nodes"] if pick(n)))
        write_graph(folder, g)

    return run


def change_graph(change):
    def run(folder):
        g = read_graph(folder)
        change(g)
        write_graph(folder, g)

    return run


def put(key, value):
    return lambda n: n.__setitem__(key, value)


def shape(value):
    return lambda n: n["outputs"][0].__setitem__("shape", value)


def truncated(file, at):
    def run(folder):
        path = os.path.join(folder, file)
        data = open(path, "rb").read().rstrip() if file == "graph.json" else open(path, "rb").read()
        n = 8 + struct.unpack("<Q", data[:8])[0] if file != "graph.json" else 0
        with open(path, "wb") as f:
            f.write(data[: at(len(data), n)])

    return run


def patched(file, change):
    def run(folder):
        path = os.path.join(folder, file)
        data = change(open(path, "rb").read())
        with open(path, "wb") as f:
            f.write(data)

    return run


def header(change, file="weights.safetensors"):
    def edit(data):
        n = struct.unpack("<Q", data[:8])[0]
        text = change(data[8 : 8 + n])
        return struct.pack("<Q", len(text)) + text + data[8 + n :]

    return patched(file, edit)


def header_json(change):
    def edit(text):
        h = json.loads(text)
        change(h, [k for k in h if k != "__metadata__"])
        return json.dumps(h).encode()

    return header(edit)


def drop(file):
    return lambda folder: os.remove(os.path.join(folder, file))


def as_folder(file):
    def run(folder):
        os.remove(os.path.join(folder, file))
        os.mkdir(os.path.join(folder, file))

    return run


def is_op(n):
    return n["op"].startswith("aten::")


def is_parameter(n):
    return n["op"] == "parameter"


def with_ref(n):
    return is_op(n) and any(True for _ in refs(n["args"]))


MALFORMED = {
    "dangling ref": change_node(
        with_ref, lambda n: n["args"].__setitem__(0, {"ref": "no_such_node"})
    ),
    "ref to itself": change_node(with_ref, lambda n: n["args"].__setitem__(0, {"ref": n["id"]})),
    "ref that is a number": change_node(with_ref, lambda n: n["args"].__setitem__(0, {"ref": 7})),
    "ref forward": change_graph(lambda g: g["nodes"].insert(0, g["nodes"].pop())),
    "duplicate id": change_graph(lambda g: g["nodes"][1].__setitem__("id", g["nodes"][0]["id"])),
    "no id": change_graph(lambda g: g["nodes"][1].pop("id")),
    "id that is a number": change_graph(lambda g: g["nodes"][1].__setitem__("id", 1)),
    "no op": change_graph(lambda g: g["nodes"][1].pop("op")),
    "nodes is an object": change_graph(put("nodes", {})),
    "no outputs": change_graph(lambda g: g.pop("outputs")),
    "dangling output": change_graph(lambda g: g["outputs"][0].__setitem__("ref", "no_such_node")),
    "unknown version": change_graph(put("version", 3)),
    "unknown format": change_graph(put("format", "other")),
    "top is a list": patched("graph.json", lambda d: b"[" + d.rstrip() + b"]"),
    "trailing text": patched("graph.json", lambda d: d.rstrip() + b" {}"),
    "not UTF-8": patched("graph.json", lambda d: d.replace(b'"parameter"', b'"param\xff\xfe"', 1)),
    "deep nesting": patched(
        "graph.json",
        lambda d: d.replace(
            b'"metadata": {', b'"metadata": {"x": ' + b"[" * 200000 + b"]" * 200000 + b",", 1
        ),
    ),
    "size 2^62": change_node(is_parameter, shape([2**62, 4])),
    "size 2^63": change_node(is_parameter, shape([2**63])),
    "size 1e30": change_node(is_parameter, shape([1e30])),
    "size of an operator 2^62": change_node(is_op, shape([2**62, 2**62])),
    "negative size": change_node(is_parameter, shape([-1])),
    "size is a string": change_node(is_parameter, shape(["7"])),
    "rank 100000": change_node(is_parameter, shape([1] * 100000)),
    "other shape than the tensor": change_node(is_parameter, shape([1, 1])),
    "unknown dtype": change_node(
        is_parameter, lambda n: n["outputs"][0].__setitem__("dtype", "float33")
    ),
    "other dtype than the tensor": change_node(
        is_parameter, lambda n: n["outputs"][0].__setitem__("dtype", "int32")
    ),
    "leaf without its tensor": change_node(is_parameter, put("name", "nobody")),
    "getitem past the end": change_node(
        lambda n: n["op"] == "getitem", lambda n: n["args"].__setitem__(1, 99)
    ),
    "missing argument": change_node(lambda n: n["op"] == "aten::layer_norm", put("args", [])),
    "too many arguments": change_node(
        lambda n: n["op"] == "aten::tanh", lambda n: n["args"].extend([1, 2, 3, 4])
    ),
    "unknown keyword": change_node(
        lambda n: n["op"] == "aten::tanh", put("kwargs", {"no_such": 1})
    ),
    "no graph.json": drop("graph.json"),
    "no weights": drop("weights.safetensors"),
    "no inputs": drop("inputs.safetensors"),
    "graph.json is a folder": as_folder("graph.json"),
    "weights is a folder": as_folder("weights.safetensors"),
    "header of 2^63 bytes": patched(
        "weights.safetensors", lambda d: struct.pack("<Q", 2**63) + d[8:]
    ),
    "header of 2^64-1 bytes": patched(
        "weights.safetensors", lambda d: struct.pack("<Q", 2**64 - 1) + d[8:]
    ),
    "header is longer than the file": patched(
        "weights.safetensors", lambda d: struct.pack("<Q", len(d)) + d[8:]
    ),
    "header is no object": header(lambda t: b"[" + b" " * (len(t) - 2) + b"]"),
    "header is not UTF-8": header(lambda t: t.replace(b"weight", b"w\xff\xfeght", 1)),
    "offsets past the end": header_json(
        lambda h, k: h[k[-1]].__setitem__("data_offsets", [0, 2**40])
    ),
    "offsets exchanged": header_json(lambda h, k: h[k[0]]["data_offsets"].reverse()),
    "offsets negative": header_json(lambda h, k: h[k[0]].__setitem__("data_offsets", [-8, 0])),
    "offsets overlap": header_json(
        lambda h, k: h[k[1]].__setitem__("data_offsets", [x + 4 for x in h[k[1]]["data_offsets"]])
    ),
    "shape against bytes": header_json(lambda h, k: h[k[0]].__setitem__("shape", [2**62, 4])),
    "unknown dtype in the header": header_json(lambda h, k: h[k[0]].__setitem__("dtype", "F33")),
    "no dtype in the header": header_json(lambda h, k: h[k[0]].pop("dtype")),
}
for _file, _points in (
    (
        "graph.json",
        [
            lambda n, h: 0,
            lambda n, h: 1,
            lambda n, h: n // 3,
            lambda n, h: n // 2,
            lambda n, h: n - 1,
        ],
    ),
    (
        "weights.safetensors",
        [
            lambda n, h: 0,
            lambda n, h: 7,
            lambda n, h: 8,
            lambda n, h: h // 2,
            lambda n, h: h,
            lambda n, h: (n + h) // 2,
            lambda n, h: n - 1,
        ],
    ),
    (
        "inputs.safetensors",
        [
            lambda n, h: 0,
            lambda n, h: 7,
            lambda n, h: 8,
            lambda n, h: h // 2,
            lambda n, h: h,
            lambda n, h: n - 1,
        ],
    ),
):
    for _i, _at in enumerate(_points):
        MALFORMED["%s cut, %d" % (_file, _i)] = truncated(_file, _at)


def malformed_case(damage, command):
    def run():
        with tempfile.TemporaryDirectory() as tmp:
            bad = copy("gpt2-2l/vllm", os.path.join(tmp, "bad"))
            damage(bad)
            work = os.path.join(tmp, "work")
            os.mkdir(work)
            good = model("gpt2-2l/hf-sdpa")
            if command == "show":
                fails("show", bad, mentions="bad", cwd=work)
            else:
                fails("compare", good, bad, "--json", "report.json", mentions="bad", cwd=work)
                fails(
                    "compare",
                    bad,
                    good,
                    "--json",
                    "report.json",
                    "--save-rules",
                    "r.rules",
                    mentions="bad",
                    cwd=work,
                )
            expect(not os.listdir(work), "written all the same: %s", os.listdir(work))

    return run


for _name, _damage in MALFORMED.items():
    case("malformed (show): " + _name, "show", True)(malformed_case(_damage, "show"))
    case("malformed: " + _name, "compare")(malformed_case(_damage, "compare"))


@case("an overload that PyTorch does not have", "compare")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        bad = copy("gpt2-2l/vllm", os.path.join(tmp, "bad"))
        change_node(lambda n: n["op"] == "aten::tanh", put("op", "aten::tanh.dim"))(bad)
        fails("compare", model("gpt2-2l/hf-sdpa"), bad, mentions="no such overload")
