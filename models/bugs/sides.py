"""The two sides of a bug: references, models with vLLM's layers, several captures in one; and how
weights get from the one to the other."""

import json
import os
import types

import torch

import decoders as d
import layers as ly
from isomer_capture import capture, configs, hf


T = 9


C = dict(
    vocab=40,
    hidden=64,
    heads=4,
    head=16,
    kv=4,
    layers=2,
    inner=136,
    eps=1e-6,
    rows=64,
    base=10000.0,
)


def sizes(**more):
    return types.SimpleNamespace(**dict(C, **more))


class Reference:
    """A model of Transformers and how it is captured."""

    def __init__(self, kind, attn="sdpa", **settings):
        settings.setdefault("vocab_size", 40)
        self.options = types.SimpleNamespace(
            model=kind,
            reduce=True,
            layers=2,
            settings=list(settings.items()),
            attn=attn,
            experts="batched_mm",
            length=T,
            sets=1,
            dtype="float32",
            head=None,
            seed=0,
            specialize=False,
            batch=1,
            name=None,
            trace=False,
            dynamic={},
            static=False,
            cached=None,
        )
        self.config, _ = hf.prepare(self.options)
        for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
            if getattr(self.config, name, None) is not None:
                setattr(self.config, name, None if name[0] == "p" else 1)
        self.model = hf.build(self.options, self.config, None)
        self.state = self.model.state_dict()

    def write(self, out):
        hf.capture_model(
            types.SimpleNamespace(**dict(vars(self.options), out=out)), self.config, self.model
        )


class Module:
    """Any module on any inputs."""

    def __init__(self, model, inputs, name, framework, call=None, attn=None):
        self.model, self.inputs, self.name, self.framework, self.call, self.attn = (
            model.eval(),
            inputs,
            name,
            framework,
            call,
            attn,
        )
        self.state = model.state_dict()

    def write(self, out):
        one = lambda: capture(
            self.model,
            self.inputs,
            out,
            call=self.call,
            model=self.name,
            framework=self.framework,  # noqa: E731
            output_names=["logits"],
            attributes=ly.ATTRIBUTES,
            metadata={"written_by": "models/bugs/make.py"},
        )
        if self.attn:
            with hf.as_it_runs(self.attn):
                one()
        else:
            one()


def tokens(length=T):
    return torch.randint(C["vocab"], (1, length), generator=torch.Generator().manual_seed(1))


def published(model, name, length=T):
    """A reference of remote.py with drawn weights."""
    configs.draw(model, 0)
    return Module(model, {"input_ids": tokens(length)}, name, "pytorch")


STACKED = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
    "w13_weight": ("gate_up_proj",),
    "w2_weight": ("down_proj",),
    ".mlp.gate.": (".mlp.router.",),
    ".self_attn.": (".attn.",),
}


def source(name, state, stacked, transposed):
    """The tensor of the checkpoint that a parameter is made of."""

    def read(n):
        t = state[n]
        return t.t() if transposed and t.dim() == 2 and n.endswith(transposed) else t

    if name in state:
        return read(name)
    for ours, theirs in stacked.items():
        names = [name.replace(ours, t) for t in theirs]
        if ours in name and all(n in state for n in names):
            return torch.cat([read(n) for n in names])
    raise KeyError(name)


def loaded(model, state, stacked=STACKED, transposed=()):
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(source(name, state, stacked, transposed))
    return model


def like_vllm(model, name, length=T, positions=None):
    for n, p in model.named_parameters():
        assert not torch.isnan(p).any(), n
    inputs = {
        "input_ids": tokens(length)[0],
        "positions": torch.arange(length) if positions is None else positions,
    }
    return Module(model, inputs, name, "vllm")


class Cut:
    """A side whose table has fewer rows than it is read at: the capture is made with a table that
    is long enough, which is then cut."""

    def __init__(self, side, leaf, rows):
        self.side, self.leaf, self.rows = side, leaf, rows

    def write(self, out):
        from safetensors.torch import load_file, save_file

        self.side.write(out)
        path = os.path.join(out, "graph.json")
        with open(path, encoding="utf-8") as f:
            graph = json.load(f)
        weights = load_file(os.path.join(out, "weights.safetensors"))
        found = [
            n for n in graph["nodes"] if "args" not in n and n.get("name", "").endswith(self.leaf)
        ]
        assert found, self.leaf
        for n in found:
            n["outputs"][0]["shape"][0] = self.rows
            weights[n["name"]] = weights[n["name"]][: self.rows].contiguous()
        with open(path, "w", encoding="utf-8") as f:
            json.dump(graph, f)
        save_file(weights, os.path.join(out, "weights.safetensors"))


class Several:
    """Ranks: nodes and leaves are named as a capture of several ranks has them."""

    def __init__(self, side):
        self.side = side

    def write(self, out):
        self.side.write(out)
        path = os.path.join(out, "graph.json")
        with open(path, encoding="utf-8") as f:
            graph = json.load(f)
        name = {}
        for n in graph["nodes"]:
            where = n.get("name") if "args" not in n else n.get("scope", "")
            new = n["id"]
            for r in range(8):
                if where == "rank%d" % r or where.startswith("rank%d." % r):
                    new = "r%d_%s" % (r, n["id"].replace("_rank%d_" % r, "_"))
                    if "args" in n:
                        n["scope"] = where.partition(".")[2]
            if n["op"].startswith("dist::"):
                new = "dist_" + n["id"]
            name[n["id"]] = new

        def renamed(v):
            if isinstance(v, dict):
                return {k: name[x] if k == "ref" else renamed(x) for k, x in v.items()}
            return [renamed(x) for x in v] if isinstance(v, list) else v

        for n in graph["nodes"]:
            n["id"] = name[n["id"]]
            for key in ("args", "kwargs"):
                if key in n:
                    n[key] = renamed(n[key])
        for o in graph["outputs"]:
            o["ref"] = name[o["ref"]]
        with open(path, "w", encoding="utf-8") as f:
            json.dump(graph, f)


def rotary(c, dim=None, base=None, neox=True, of=None, rows=None):
    return ly.RotaryEmbedding(
        c.head,
        ly.table(ly.inverse_frequencies(base or c.base, dim or c.head, of), rows or c.rows),
        neox,
    )


def llama(
    c,
    ref,
    name,
    norm=ly.RMSNorm,
    act=None,
    mlp=None,
    norm_bias=False,
    attention=None,
    rotary_of=None,
    length=T,
    stacked=STACKED,
    **model,
):
    """A decoder of the Llama family. `attention`, `act`, `mlp`: of layer i."""

    def make(i, at):
        own = attention(i) if attention else {}
        return d.Layer(
            norm(c.hidden, c.eps, bias=norm_bias),
            d.SelfAttention(at + ".self_attn", c, rotary_of() if rotary_of else rotary(c), **own),
            norm(c.hidden, c.eps, bias=norm_bias),
            mlp(i) if mlp else d.gated(c.hidden, c.inner, act(i) if act else ly.SiluAndMul()),
        )

    return like_vllm(
        loaded(d.Llama(c, make, norm=norm, norm_bias=norm_bias, **model), ref.state, stacked),
        name,
        length,
    )
