"""Captures on disk: graph.json and safetensors (docs/capture-format.md). A capture appears whole or
not at all: it is written beside its place and moved there."""

import ctypes
import json
import math
import os
import shutil
import struct
import tempfile

from .errors import CaptureError

SAFETENSORS = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}


class Size:
    """An integer among arguments that is an expression over symbols."""

    def __init__(self, text):
        self.text = text


def leaves_of(tree, root):
    """(name, tensor) for the tensors of a nest of inputs or outputs; the rest is left out."""
    from torch.utils import _pytree as pytree

    flat, _ = pytree.tree_flatten_with_path(tree)
    out = []
    for path, leaf in flat:
        keys = [str(getattr(p, "key", getattr(p, "idx", getattr(p, "name", p)))) for p in path]
        name = ".".join(keys) or root
        out.append((root + "_" + name if name[0].isdigit() else name, leaf))
    return out


def dtype_name(dtype):
    return str(dtype).replace("torch.", "")


def bytes_of(tensor):
    """The bytes of a contiguous tensor in memory, uncopied; without NumPy, which PyTorch does not
    bring along."""
    n = tensor.numel() * tensor.element_size()
    return memoryview((ctypes.c_char * n).from_address(tensor.data_ptr())) if n else b""


def write_safetensors(path, tensors):
    """tensors: name to torch tensor. Rows follow one another, as the format asks."""
    header, held, offset = {}, [], 0
    for name in sorted(tensors):
        t = tensors[name].detach().cpu().resolve_conj().resolve_neg().contiguous()
        kind = SAFETENSORS.get(dtype_name(t.dtype))
        if kind is None:
            raise CaptureError(
                "tensor %s has dtype %s, which safetensors cannot hold"
                % (name, dtype_name(t.dtype))
            )
        end = offset + t.numel() * t.element_size()
        header[name] = {"dtype": kind, "shape": list(t.shape), "data_offsets": [offset, end]}
        held.append(t)
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in held:
            f.write(bytes_of(t))


def read_safetensors(path):
    """Name to torch tensor."""
    import torch

    kinds = {word: getattr(torch, name) for name, word in SAFETENSORS.items()}
    try:
        with open(path, "rb") as f:
            data = f.read()
        n = struct.unpack("<Q", data[:8])[0]
        out = {}
        for name, entry in json.loads(data[8 : 8 + n]).items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            raw = bytearray(data[8 + n + begin : 8 + n + end])
            kind = kinds[entry["dtype"]]
            flat = torch.frombuffer(raw, dtype=kind) if raw else torch.empty(0, dtype=kind)
            out[name] = flat.reshape(entry["shape"])
        return out
    except OSError as e:
        raise CaptureError("%s: %s" % (path, e.strerror)) from None
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, struct.error):
        raise CaptureError("%s: is no safetensors file" % path) from None


def value(x):
    """One argument as graph.json writes it; a reference is an object with `id`."""
    import torch

    if x is None or isinstance(x, (bool, int, str)):
        return x
    if isinstance(x, float):
        if math.isinf(x) or math.isnan(x):
            return {"float": "nan" if math.isnan(x) else "inf" if x > 0 else "-inf"}
        return x
    if isinstance(x, Size):
        return {"size": x.text}
    if hasattr(x, "id"):
        return {"ref": x.id}
    if isinstance(x, (list, tuple)):
        return [value(e) for e in x]
    for kind, word in (
        (torch.dtype, "dtype"),
        (torch.layout, "layout"),
        (torch.memory_format, "memory_format"),
    ):
        if isinstance(x, kind):
            name = str(x).replace("torch.", "")
            return {word: name.replace("_format", "") if word == "memory_format" else name}
    if isinstance(x, torch.device):
        return {"device": str(x)}
    raise CaptureError("an argument of type %s has no place in a capture" % type(x).__name__)


def write_capture(out_dir, graph, weights, inputs, trace=None, overwrite=True):
    """graph: the JSON object; weights: name to tensor; inputs: a list of sets, each name to
    tensor."""
    out_dir = os.path.abspath(out_dir)
    if os.path.exists(out_dir):
        known = os.path.isdir(out_dir) and (
            os.path.exists(os.path.join(out_dir, "graph.json")) or not os.listdir(out_dir)
        )
        if not (overwrite and known):
            raise CaptureError("%s exists and is no capture; name another folder" % out_dir)
    try:
        os.makedirs(os.path.dirname(out_dir), exist_ok=True)
        part = tempfile.mkdtemp(prefix=".capture-", dir=os.path.dirname(out_dir))
    except OSError as e:
        raise CaptureError("%s cannot be made: %s" % (out_dir, e.strerror)) from e
    try:
        write_safetensors(os.path.join(part, "weights.safetensors"), weights)
        for k, one in enumerate(inputs):
            write_safetensors(
                os.path.join(part, "inputs.%d.safetensors" % k if k else "inputs.safetensors"), one
            )
        if trace is not None:
            write_safetensors(os.path.join(part, "trace.safetensors"), trace)
        with open(os.path.join(part, "graph.json"), "w", encoding="utf-8") as f:
            head = {k: v for k, v in graph.items() if k not in ("nodes", "outputs", "metadata")}
            f.write(json.dumps(head, indent=1)[:-2] + ',\n "nodes": [\n')
            f.write(",\n".join("  " + json.dumps(n, allow_nan=False) for n in graph["nodes"]))
            f.write(
                '\n ],\n "outputs": %s,\n "metadata": %s\n}\n'
                % (json.dumps(graph["outputs"]), json.dumps(graph["metadata"], sort_keys=True))
            )
        os.chmod(part, 0o755)
        if os.path.exists(out_dir):
            shutil.rmtree(out_dir)
        os.rename(part, out_dir)
    finally:
        shutil.rmtree(part, ignore_errors=True)
