"""What a side of a comparison may be beside a module and a capture's folder: each becomes one of
these, or is refused in words that say what to give in its place."""

import os


class Refused(Exception):
    """Why, and what to do."""


def plain(model, folder):
    """The module, or the path of a capture, that stands for a model; `folder` is where the capture
    would go."""
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        if isinstance(path, bytes) or not path or "\0" in path:
            raise Refused("%r is no path of a capture" % (path,))
        # What begins with a dash would be an option.
        return os.path.join(os.curdir, path) if path.startswith("-") else path
    import torch

    if isinstance(model, torch.export.ExportedProgram):
        path = folder + ".pt2"
        torch.export.save(model, path)
        return path
    if isinstance(model, torch.jit.ScriptModule):
        raise Refused("TorchScript is not read: give the module that it was made from")
    if not isinstance(model, torch.nn.Module):
        named = type(model).__module__.split(".")[0]
        if named in ("onnx", "onnxruntime"):
            raise Refused("ONNX models are not read: give the module that it was made from")
        raise Refused("a side is a torch.nn.Module, an ExportedProgram or a capture's folder")
    # torch.compile makes no other program of it: what its compiler does is looked at by
    # isomer.checked("inductor").
    model = getattr(model, "_orig_mod", model)
    packed = [n for n, m in model.named_modules() if holds_packed(m)]
    if packed:
        raise Refused(
            "%s holds packed weights (torch.ao.quantization), which cannot be traced: give the "
            "module before it is converted, or one that computes with its dequantised weights"
            % (packed[0] or "the module")
        )
    return model


def holds_packed(module):
    """Whether a module is one of torch.ao's quantised ones, whose weights PyTorch packs."""
    return any("quantized" in c.__module__.split(".") for c in type(module).__mro__)
