"""The process behind `isomer --helper CMD`: runs operators that only Python can call.

    isomer compare LEFT RIGHT --helper "python3 -m isomer_capture.helper --import my_kernels"

    --import MODULE           imported first: where the operators are registered (may be repeated)
    --adaptor MODULE:NAME     called as NAME(op, attributes, arguments) for operators whose capture
                              carries attributes. It returns a context manager, inside of which the
                              operator is called; a dictionary that it yields is further arguments
                              by name
    --seconds N               how long one call may take (default 60)
    --device DEVICE           where the operators run: tensors are brought there (default cpu; cuda,
                              cuda:1)
    --dtype DTYPE             the dtype that operators get in place of float64: float32, bfloat16 or
                              float16, for kernels that have no float64. Isomer's tolerances allow
                              for the bits that a result's dtype lacks

The other side of validate/exec/helper.c, where the protocol is. What an operator prints goes to
stderr, what it raises is the answer to that one call; what ends or hangs this process costs that
one call too."""

import argparse
import contextlib
import importlib
import json
import math
import mmap
import os
import socket
import struct
import sys


class Unknown(Exception):
    """No operator of that name."""


def parser():
    p = argparse.ArgumentParser(
        prog="python3 -m isomer_capture.helper", description="Runs operators for isomer --helper."
    )
    p.add_argument("--import", dest="modules", action="append", default=[], metavar="MODULE")
    p.add_argument("--adaptor", metavar="MODULE:NAME")
    p.add_argument("--seconds", type=int, default=60)
    p.add_argument("--device", default="cpu")
    p.add_argument(
        "--dtype", choices=["float64", "float32", "bfloat16", "float16"], default="float64"
    )
    return p


def receive(link, n):
    out = bytearray()
    while len(out) < n:
        part = link.recv(n - len(out))
        if not part:
            sys.exit(0)  # isomer is done
        out += part
    return bytes(out)


def send(link, message):
    text = json.dumps(message).encode()
    link.sendall(struct.pack("<I", len(text)) + text)


class Memory:
    """The memory file, mapped anew where it has grown."""

    def __init__(self, fd, device="cpu", dtype="float64"):
        self.fd, self.map, self.device, self.dtype = fd, None, device, dtype

    def grow(self, size):
        have = os.fstat(self.fd).st_size
        if have < size:
            os.ftruncate(self.fd, size)
        self.map = mmap.mmap(self.fd, max(size, have, 1)) if max(size, have) else None

    def tensor(self, dtype, shape, offset):
        import torch

        kind = getattr(torch, dtype)
        taken = getattr(torch, self.dtype) if kind == torch.float64 else kind
        count = math.prod(shape)
        if not count:
            return torch.empty(shape, dtype=taken, device=self.device)
        # A copy: an operator may keep what it is given.
        given = torch.frombuffer(self.map, dtype=kind, count=count, offset=offset).reshape(shape)
        return given.to(self.device, taken, copy=True)

    def put(self, tensors, offset):
        """Behind the arguments. Returns what the answer says of them."""
        import torch

        out, at = [], (offset + 63) // 64 * 64
        dense = [t.detach().cpu().resolve_conj().resolve_neg().contiguous() for t in tensors]
        self.grow(at + sum((t.numel() * t.element_size() + 63) // 64 * 64 for t in dense))
        for t in dense:
            if t.numel():
                size = t.numel() * t.element_size()
                torch.frombuffer(self.map, dtype=torch.uint8, count=size, offset=at).copy_(
                    t.reshape(-1).view(torch.uint8)
                )
                out.append([str(t.dtype).replace("torch.", ""), list(t.shape), at])
                at += (size + 63) // 64 * 64
            else:
                out.append([str(t.dtype).replace("torch.", ""), list(t.shape), 0])
        return out


def end_of(x):
    """Where the last tensor of the arguments ends."""
    if isinstance(x, list):
        return max(map(end_of, x), default=0)
    if isinstance(x, dict) and "list" in x:
        return end_of(x["list"])
    if isinstance(x, dict) and "tensor" in x:
        return x["tensor"][2] + 16 * math.prod(x["tensor"][1])
    return 0


def decode(x, memory):
    import torch

    if not isinstance(x, dict):
        return x
    ((kind, v),) = x.items()
    if kind == "tensor":
        return memory.tensor(*v)
    if kind == "float":
        return float(v)
    if kind == "dtype":
        return getattr(torch, v)
    return [decode(e, memory) for e in v]


def is_pair(x):
    return isinstance(x, list) and len(x) == 2 and isinstance(x[0], str)


def arguments(schema, given):
    """(positional, by name, attributes): captures write arguments by name as (name, value), and
    attributes as one list of such pairs behind the rest."""
    given, attributes, named = list(given), {}, {}
    if given and isinstance(given[-1], list) and given[-1] and all(map(is_pair, given[-1])):
        attributes = dict(given.pop())
    names = {a.name for a in schema.arguments}
    while given and is_pair(given[-1]) and given[-1][0] in names:
        name, value = given.pop()
        named[name] = value
    for a, value in zip(schema.arguments, given):
        named.setdefault(a.name, value)
    return named, attributes


def operator(name):
    import torch

    space, rest = name.split("::", 1)
    packet, _, overload = rest.partition(".")
    try:
        return getattr(getattr(getattr(torch.ops, space), packet), overload or "default")
    except AttributeError:
        raise Unknown(
            "the helper has no such operator; name the module that registers it with --import"
        ) from None


def run(request, memory, adaptor):
    import torch

    op = operator(request["op"])
    named, attributes = arguments(op._schema, [decode(a, memory) for a in request["args"]])
    if attributes and adaptor is None:
        raise Unknown(
            (
                "the capture carries attributes of this operator; the helper needs an --adaptor "
                "for them"
            )
        )
    around = adaptor(request["op"], attributes, named) if attributes else contextlib.nullcontext()
    writes = [
        a.name for a in op._schema.arguments if a.alias_info is not None and a.alias_info.is_write
    ]
    with around as more, torch.no_grad():
        if isinstance(more, dict):
            named.update(more)
        default = torch.get_default_dtype()
        try:
            if request["float64"]:
                torch.set_default_dtype(getattr(torch, memory.dtype))
            result = op(**named)
        finally:
            torch.set_default_dtype(default)
    result = (
        [] if result is None else list(result) if isinstance(result, (list, tuple)) else [result]
    )
    result += [
        named[w] for w in writes if named.get(w) is not None
    ]  # copies of ours: its own results, then what it wrote
    for r in result:
        if not isinstance(r, torch.Tensor):
            raise TypeError("it returns a %s where a tensor should be" % type(r).__name__)
    return result


def first_line(e):
    text = str(e).strip().splitlines()
    return "%s: %s" % (type(e).__name__, text[0][:300] if text else "(no message)")


def main(argv=None):
    options = parser().parse_args(argv)
    try:
        link = socket.socket(fileno=int(os.environ["ISOMER_HELPER_SOCKET"]))
        memory = Memory(int(os.environ["ISOMER_HELPER_MEMORY"]), options.device, options.dtype)
    except (KeyError, ValueError, OSError):
        print("isomer_capture.helper: is started by isomer --helper", file=sys.stderr)
        return 2
    sys.path.insert(0, os.getcwd())
    import torch

    torch.set_num_threads(1)
    if options.device != "cpu":
        torch.zeros(1, device=options.device)  # fails here where there is none
    for module in options.modules:
        importlib.import_module(module)
    adaptor = None
    if options.adaptor:
        module, _, name = options.adaptor.partition(":")
        adaptor = getattr(importlib.import_module(module), name)
    with contextlib.suppress(ImportError):
        # Seconds, which the first call of a custom_op would pay for.
        import torch._dynamo  # noqa: F401
    send(link, {"isomer-helper": 1, "seconds": max(1, options.seconds)})
    while True:
        request = json.loads(receive(link, struct.unpack("<I", receive(link, 4))[0]))
        try:
            memory.grow(0)
            answer = {"outputs": memory.put(run(request, memory, adaptor), end_of(request["args"]))}
        except Unknown as e:
            answer = {"error": str(e), "unknown": True}
        except Exception as e:
            answer = {"error": first_line(e)}
        send(link, answer)


if __name__ == "__main__":
    sys.exit(main())
