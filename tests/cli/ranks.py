#!/usr/bin/env python3
"""A capture of several ranks made from a capture of one: tensor parallel as vLLM does it, with a
fault on request.

    ranks.py SOURCE TARGET RANKS [FAULT]      SOURCE: models/gpt2-2l/vllm or models/llama-2l/vllm

Attention and feed-forward are cut by heads and columns, their outputs' projections by rows with an
all_reduce behind, vocabularies by rows with masks; with fewer key-value heads than ranks, heads are
repeated. Plain Python 3."""

import json
import os
import shutil
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from tensors import read_tensors, write_tensors  # noqa: E402

HIGH = 2**63 - 1


# ---- tensors: (dtype, shape, bytes) ----


def rows(t, begin, end):
    dtype, shape, data = t
    step = len(data) // shape[0]
    return dtype, [end - begin] + shape[1:], data[begin * step : end * step]


def columns(t, begin, end):
    dtype, (n, m), data = t
    item = len(data) // (n * m)
    return (
        dtype,
        [n, end - begin],
        b"".join(data[(i * m + begin) * item : (i * m + end) * item] for i in range(n)),
    )


def stack(parts):
    return (
        parts[0][0],
        [sum(p[1][0] for p in parts)] + parts[0][1][1:],
        b"".join(p[2] for p in parts),
    )


def scaled(t, factor):
    return (
        t[0],
        t[1],
        struct.pack(
            "<%df" % (len(t[2]) // 4),
            *(factor * x for x in struct.unpack("<%df" % (len(t[2]) // 4), t[2])),
        ),
    )


# ---- shapes of what one rank computes ----


def broadcast(a, b):
    n = max(len(a), len(b))
    a, b = [1] * (n - len(a)) + a, [1] * (n - len(b)) + b
    return [y if x == 1 else x for x, y in zip(a, b)]


def numel(s):
    n = 1
    for d in s:
        n *= d
    return n


class Ranks:
    def __init__(self, source, ranks, fault=None):
        self.graph = json.load(open(os.path.join(source, "graph.json"), encoding="utf-8"))
        self.weights = read_tensors(os.path.join(source, "weights.safetensors"))
        self.ranks, self.fault = ranks, fault
        self.kind = {n["id"]: n for n in self.graph["nodes"]}
        self.nodes, self.leaves, self.shape, self.new = [], {}, {}, [{} for _ in range(ranks)]
        attention = next(
            n for n in self.graph["nodes"] if n["op"].startswith("vllm::unified_attention")
        )["attributes"]
        self.head, self.heads, self.kv = (
            attention["head_size"],
            attention["num_heads"],
            attention["num_kv_heads"],
        )
        self.last = ranks - 1
        self.vocabulary = self.kind[self.graph["outputs"][0]["ref"]]["outputs"][0]["shape"][
            -1
        ]  # less the padding rows of its tables

    def has(self, fault, layer=None, node=None):
        return self.fault == fault and (
            layer is None or ".%d." % layer in node.get("scope", node.get("name", ""))
        )

    # -- leaves --

    def part(self, rank, total, unit=None):
        """The rows of a rank: one of `ranks` equal blocks, or, with fewer units than ranks, the
        unit that it shares."""
        if unit and total // unit < self.ranks:
            n = total // unit
            which = rank % n if self.fault == "kv-heads" else rank * n // self.ranks
            return which * unit, (which + 1) * unit
        return rank * total // self.ranks, (rank + 1) * total // self.ranks

    def fused(self, t, rank, sizes, units, contiguous):
        """Each of the fused parts cut on its own; a fault cuts the whole."""
        if contiguous:
            return rows(t, *self.part(rank, t[1][0]))
        out, at = [], 0
        for size, unit in zip(sizes, units):
            b, e = self.part(rank, size, unit)
            out.append(rows(t, at + b, at + e))
            at += size
        return stack(out)

    def is_row(self, name):
        return name.endswith(("o_proj.weight", "down_proj.weight", "c_proj.weight"))

    def is_vocabulary(self, name):
        return name in ("lm_head.weight", "model.embed_tokens.weight")

    def cut(self, name, rank):
        t = self.weights[name]
        other = 0 if rank == self.last else rank
        if "c_attn" in name or "qkv_proj" in name:
            q, k = self.heads * self.head, self.kv * self.head
            return self.fused(
                t,
                rank,
                [q, k, k],
                [None, self.head, self.head],
                self.fault == "qkv-contiguous" and ".0." in name,
            )
        if "gate_up_proj" in name:
            size = t[1][0] // 2
            r = other if self.fault == "column-shard" and ".1." in name else rank
            return self.fused(
                t,
                r,
                [size, size],
                [None, None],
                self.fault == "gate-up-contiguous" and ".0." in name,
            )
        if "c_fc" in name:
            r = other if self.fault == "column-shard" and ".1." in name else rank
            return rows(t, *self.part(r, t[1][0]))
        if self.is_row(name):
            r = other if self.fault == "row-shard" and ".0.mlp." in name else rank
            return columns(t, *self.part(r, t[1][1]))
        if self.is_vocabulary(name):
            return rows(t, *self.part(rank, t[1][0]))
        if (
            self.fault == "stale-norm"
            and rank == self.last
            and name.endswith(("layers.1.input_layernorm.weight", "h.1.ln_1.weight"))
        ):
            return scaled(t, 1.25)
        return t

    def leaf(self, n):
        if n["op"] == "input":
            for r in range(self.ranks):
                self.new[r][n["id"]] = n["id"]
            self.shape[n["id"]] = n["outputs"][0]["shape"]
            self.nodes.append(n)
            return
        for r in range(self.ranks):
            name, id = "rank%d.%s" % (r, n["name"]), "r%d_%s" % (r, n["id"])
            if (
                n["name"].endswith("c_proj.bias")
                and r > 0
                and not (self.fault == "bias-each" and ".0.mlp." in n["name"])
            ):
                continue
            t = self.cut(n["name"], r)
            self.leaves[name] = t
            self.shape[id] = t[1]
            self.new[r][n["id"]] = id
            self.nodes.append(
                {
                    "id": id,
                    "op": n["op"],
                    "name": name,
                    "outputs": [{"shape": t[1], "dtype": n["outputs"][0]["dtype"]}],
                }
            )

    # -- operators --

    def emit(self, id, op, args, shapes, like, dtype=None, **more):
        node = {
            "id": id,
            "op": op,
            "args": args,
            "kwargs": {},
            "outputs": [
                {"shape": s, "dtype": dtype or like["outputs"][0]["dtype"]} for s in shapes
            ],
        }
        for key in ("scope", "source"):
            if key in like:
                node[key] = like[key]
        node.update(more)
        self.nodes.append(node)
        self.shape[id] = shapes[0] if len(shapes) == 1 else shapes
        return {"ref": id}

    def args(self, v, rank):
        if isinstance(v, dict):
            return {"ref": self.new[rank][v["ref"]]} if "ref" in v else v
        return [self.args(x, rank) for x in v] if isinstance(v, list) else v

    def local(self, n, r):
        """The node on one rank: its arguments at the rank's sizes, and its shapes."""
        a, op = self.args(n["args"], r), n["op"].split("::")[-1]
        s = [self.shape[x["ref"]] if isinstance(x, dict) and "ref" in x else None for x in a]
        if op == "linear":
            return a, [s[0][:-1] + [s[1][0]]]
        if op in ("chunk", "split_with_sizes"):
            d = a[2] % len(s[0])
            if op == "chunk":
                sizes = [s[0][d] // a[1]] * a[1]
            else:
                ends = [
                    self.part(r, h * self.head, u)
                    for h, u in ((self.heads, None), (self.kv, self.head), (self.kv, self.head))
                ]
                sizes = a[1] = [e - b for b, e in ends]
            return a, [s[0][:d] + [k] + s[0][d + 1 :] for k in sizes]
        if op == "getitem":
            return a, [s[0][a[1]]]
        if op in ("view", "reshape"):
            want = [x for x in a[1]]
            if -1 not in want and numel(want) != numel(s[0]):
                want[-1] = numel(s[0]) // numel(want[:-1])
            a[1] = [x if x != -1 else numel(s[0]) // -numel(want) for x in want]
            return a, [a[1]]
        if op == "cat":
            each = [self.shape[x["ref"]] for x in a[0]]
            d = a[1] % len(each[0])
            return a, [each[0][:d] + [sum(e[d] for e in each)] + each[0][d + 1 :]]
        if op == "slice.Tensor":
            full, own = self.kind[n["args"][0]["ref"]]["outputs"][0]["shape"][a[1]], s[0][a[1]]
            if full != own:
                a[2], a[3] = a[2] * own // full, a[3] if a[3] == HIGH else a[3] * own // full
            return a, [s[0][: a[1]] + [max(0, min(a[3], own) - a[2])] + s[0][a[1] + 1 :]]
        if op == "unsqueeze":
            d = a[1] % (len(s[0]) + 1)
            return a, [s[0][:d] + [1] + s[0][d:]]
        if op == "mean.dim":
            return a, [s[0][:-1] + [1]]
        if op == "index_select":
            return a, [s[2] + s[0][1:]]
        if op == "embedding":
            return a, [s[1] + s[0][1:]]
        if op in ("add.Tensor", "mul.Tensor", "sub.Tensor"):
            return a, [broadcast(s[0], s[1] or [])]
        return a, [s[0]]

    def embedding(self, n):
        """Each rank looks up what it holds; the rest is zero."""
        parts, ids = [], n["args"][1]
        total = self.weights[self.kind[n["args"][0]["ref"]]["name"]][1][0]
        for r in range(self.ranks):
            b, e = self.part(r, total)
            e = min(e, self.vocabulary)
            if self.fault == "vocabulary-mask" and r == self.last:
                b += 1
            p = "r%d_vocabulary_" % r
            i = self.args(ids, r)
            shape = self.shape[i["ref"]]
            int_like = dict(n, outputs=[{"shape": shape, "dtype": "int64"}])
            low = self.emit(p + "ge", "aten::ge.Scalar", [i, b], [shape], int_like, "bool")
            high = self.emit(p + "lt", "aten::lt.Scalar", [i, e], [shape], int_like, "bool")
            both = self.emit(
                p + "and", "aten::__and__.Tensor", [low, high], [shape], int_like, "bool"
            )
            off = self.emit(
                p + "sub", "aten::sub.Tensor", [i, self.part(r, total)[0]], [shape], int_like
            )
            own = self.emit(p + "mul", "aten::mul.Tensor", [both, off], [shape], int_like)
            no = self.emit(p + "not", "aten::bitwise_not", [both], [shape], int_like, "bool")
            table = self.args(n["args"][0], r)
            out = shape + self.shape[table["ref"]][1:]
            found = self.emit(p + "embedding", "aten::embedding", [table, own], [out], n)
            column = self.emit(
                p + "unsqueeze", "aten::unsqueeze", [no, -1], [shape + [1]], int_like, "bool"
            )
            parts.append(
                self.emit(
                    p + "masked_fill", "aten::masked_fill.Scalar", [found, column, 0], [out], n
                )
            )
        self.reduce(n, parts)

    def reduce(self, n, parts):
        all = self.emit(
            "dist_" + n["id"],
            "dist::all_reduce",
            [parts, {"reduce-max": "max", "reduce-xor": "xor"}.get(self.fault, "sum")],
            [self.shape[parts[0]["ref"]]],
            n,
        )
        if self.has("reduce-twice", 0, n) and ".mlp." in n["scope"]:
            all = self.emit(
                "dist_again_" + n["id"],
                "dist::all_reduce",
                [[all] * self.ranks, "sum"],
                [self.shape[all["ref"]]],
                n,
            )
        for r in range(self.ranks):
            self.new[r][n["id"]] = all["ref"]

    def gather(self, n, parts):
        shape = list(self.shape[parts[0]["ref"]])
        order = parts[::-1] if self.fault == "gather-order" else parts
        if self.fault == "reduce-for-gather":
            some = self.emit("dist_" + n["id"], "dist::all_reduce", [order, "sum"], [shape], n)
            all = self.emit(
                "repeated_" + n["id"],
                "aten::cat",
                [[some] * self.ranks, 1],
                [[shape[0], self.ranks * shape[1]]],
                n,
            )
        else:
            all = self.emit(
                "dist_" + n["id"],
                "dist::all_gather",
                [order, 1],
                [[shape[0], self.ranks * shape[1]]],
                n,
            )
        for r in range(self.ranks):
            self.new[r][n["id"]] = all["ref"]

    def operator(self, n):
        op = n["op"].split("::")[-1]
        weight = self.kind[n["args"][1]["ref"]].get("name", "") if op == "linear" else ""
        if op == "embedding" and self.is_vocabulary(self.kind[n["args"][0]["ref"]].get("name", "")):
            return self.embedding(n)
        parts = []
        for r in range(self.ranks):
            node = n
            if (
                op == "linear"
                and len(n["args"]) == 3
                and self.is_row(weight)
                and n["args"][2]["ref"] not in self.new[r]
            ):
                node = dict(n, args=n["args"][:2])
            args, shapes = self.local(node, r)
            more = {}
            if "attributes" in n:
                b, e = self.part(r, self.kv * self.head, self.head)
                more["attributes"] = dict(
                    n["attributes"],
                    num_heads=self.heads // self.ranks,
                    num_kv_heads=(e - b) // self.head,
                )
                if self.has("scale-rank", 1, n) and r == self.last:
                    more["attributes"]["scale"] *= 1.01
            if (
                self.has("eps-rank", 1, n)
                and r == self.last
                and "norm" in n["scope"].replace("ln_1", "norm")
                and "post" not in n["scope"]
            ):
                args = [1e-4 if isinstance(x, float) and x == 1e-5 else x for x in args]
            parts.append(self.emit("r%d_%s" % (r, n["id"]), n["op"], args, shapes, n, **more))
            self.new[r][n["id"]] = parts[-1]["ref"]
        if self.is_row(weight):
            if not (self.has("no-reduce", 0, n) and ".mlp." not in n["scope"]):
                self.reduce(n, parts)
            if self.has("bias-again", 0, n) and ".mlp." in n["scope"] and len(n["args"]) == 3:
                for r in range(self.ranks):
                    more = self.emit(
                        "r%d_again_%s" % (r, n["id"]),
                        "aten::add.Tensor",
                        [{"ref": self.new[r][n["id"]]}, self.args(n["args"][2], 0)],
                        [n["outputs"][0]["shape"]],
                        n,
                    )
                    self.new[r][n["id"]] = more["ref"]
        elif self.is_vocabulary(weight):
            self.gather(n, parts)

    def build(self, target):
        for n in self.graph["nodes"]:
            (self.operator if "args" in n else self.leaf)(n)
        outputs = []
        for o in self.graph["outputs"]:
            for r in range(self.ranks):
                ref = self.new[r][o["ref"]]
                if self.fault == "replica" and r == self.last:
                    n = self.kind[o["ref"]]
                    ref = self.emit(
                        "r%d_late" % r,
                        "aten::mul.Tensor",
                        [{"ref": ref}, 1.001],
                        [n["outputs"][0]["shape"]],
                        n,
                    )["ref"]
                outputs.append({"name": o["name"] + ("_rank%d" % r if r else ""), "ref": ref})
        graph = dict(self.graph, nodes=self.nodes, outputs=outputs, metadata={})
        os.makedirs(target, exist_ok=True)
        json.dump(graph, open(os.path.join(target, "graph.json"), "w", encoding="utf-8"))
        write_tensors(os.path.join(target, "weights.safetensors"), self.leaves)


def shard(source, target, ranks, fault=None):
    Ranks(source, ranks, fault).build(target)
    shutil.copy(os.path.join(source, "inputs.safetensors"), target)
    return target


# Fault: models it can be made of, with the number of ranks, and what the first divergence on its
# side must name: nodes, leaves or scopes.
FAULTS = {
    "no-reduce": (
        ("gpt2-2l", 2, "transformer.h.0"),
        ("llama-2l", 2, "layers.0.post_attention_layernorm"),
    ),
    "reduce-twice": (
        ("gpt2-2l", 2, "transformer.h.0"),
        ("llama-2l", 4, "dist_again_linear_3|layernorm"),
    ),
    "reduce-max": (("gpt2-2l", 2, "dist_"),),
    "reduce-for-gather": (("llama-2l", 2, "logits_processor"),),
    "gather-order": (("gpt2-2l", 2, "dist_linear_8"), ("llama-2l", 4, "dist_linear_8")),
    "bias-each": (
        ("gpt2-2l", 2, "transformer.h.0.mlp.c_proj"),
        ("gpt2-2l", 4, "transformer.h.0.mlp.c_proj"),
    ),
    "bias-again": (("gpt2-2l", 2, "transformer.h.0"),),
    "qkv-contiguous": (
        ("gpt2-2l", 2, "transformer.h.0.attn"),
        ("llama-2l", 2, "layers.0.self_attn"),
    ),
    "gate-up-contiguous": (("llama-2l", 2, "layers.0.mlp"),),
    "kv-heads": (("llama-2l", 4, "layers.0.self_attn"),),
    "column-shard": (
        ("gpt2-2l", 2, "r1_linear_6|r1_p_transformer_h_1_mlp_c_fc"),
        ("llama-2l", 4, "r3_linear_6|r3_p_model_layers_1_mlp_gate_up"),
    ),
    "row-shard": (
        ("gpt2-2l", 2, "r1_linear_3|r1_p_transformer_h_0_mlp_c_proj"),
        ("llama-2l", 2, "r1_linear_3|r1_p_model_layers_0_mlp_down"),
    ),
    "vocabulary-mask": (("gpt2-2l", 2, "transformer.wte"), ("llama-2l", 4, "model.embed_tokens")),
    "stale-norm": (
        ("gpt2-2l", 2, "r1_p_transformer_h_1_ln_1_weight|r1_layer_norm_2"),
        ("llama-2l", 2, "r1_p_model_layers_1_input_layernorm_weight"),
    ),
    "scale-rank": (
        ("gpt2-2l", 2, "r1_unified_attention_1"),
        ("llama-2l", 4, "r3_unified_attention_1"),
    ),
    "eps-rank": (("llama-2l", 2, "r1_add_6|input_layernorm"),),
    "replica": (("gpt2-2l", 2, "r1_late"), ("llama-2l", 4, "r3_late")),
}

if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    shard(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
