"""Batch norm in training, which writes its running statistics behind its schema: as one without
them, and as what is written there."""

NAMES = ("native_batch_norm", "_native_batch_norm_legit")


def writes(name, args):
    return name in NAMES and bool(args[5]) and args[3] is not None


def record(recorder, func, name, args, kwargs):
    """args: input, weight, bias, running mean and variance, whether it trains, momentum, eps."""
    x, weight, bias, mean, var, _, momentum, eps = args[:8]
    read, emit = recorder.read, recorder.graph.emit
    value = read(x)
    dims = [d for d in range(x.dim()) if d != 1]
    now = emit("aten::mean.dim", [value, dims], {}, mean)
    spread = emit("aten::var.correction", [value, dims], {"correction": 1}, var)
    written = [
        emit("aten::lerp.Scalar", [read(old), new, momentum], {}, old)
        for old, new in ((mean, now), (var, spread))
    ]
    out = func(*args, **kwargs)
    alone = [value, *read(((weight, bias), {}))[0], None, None, True, momentum, eps]
    made = emit("aten::native_batch_norm", alone, {}, list(out), several=True)
    for t, v in [*zip(out, made), (mean, written[0]), (var, written[1])]:
        recorder.memory.write(t, v)
    return out
