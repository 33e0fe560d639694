#!/usr/bin/env python3
"""Writes the HLO texts that the tests read, and what JAX computes, from functions.py. Needs JAX
(`pip install jax`); without it nothing is written, and it says so.

    tests/hlo/generate.py [-k NAME] [-o tests/hlo/data]

For each function NAME.hlo is the module as JAX wrote it, NAME.fused.hlo as XLA's CPU compiler left
it; values.safetensors holds NAME/ARGUMENT and NAME/output... Those of collectives.py, for eight
ranks, are NAME.ranks.hlo, and in ranks.safetensors are each rank's results."""

import argparse
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]


def lowered(function, args):
    import jax

    named = jax.jit(lambda *a: function(*a), keep_unused=True).lower(*args)
    return named.as_text(dialect="hlo"), compiled_text(named.compile())


def compiled_text(compiled):
    """With all numbers of its constants, which as_text() leaves out."""
    from jaxlib import _hlo

    how = _hlo.HloPrintOptions()
    how.print_large_constants = True
    return compiled.runtime_executable().hlo_modules()[0].to_string(how)


# XLA's CPU compiler makes reduce-window of several operands of these, which is not read.
NOT_FUSED = ("max_pool_gradient", "max_pool_ties")
TOLD = ("attention", "scan", "rotary")  # keep where their instructions come from


def short(name, text):
    """Without the folders of source files; most without their names too."""
    if name in TOLD:
        return re.sub(r'"/[^"]*/', '"', text)
    tables = re.compile(r"\n(FileNames|FunctionNames|FileLocations|StackFrames)\n(\d.*\n)*")
    return re.sub(r", metadata=\{[^{}]*\}", "", tables.sub("", text))


def entry(array):
    import numpy as np

    kind = {"float32": "F32", "int32": "I32", "bool": "BOOL", "int64": "I64", "uint32": "U32"}
    array = np.asarray(array)
    return kind[str(array.dtype)], list(array.shape), np.ascontiguousarray(array).tobytes()


def write(options, name, text):
    with open(os.path.join(options.out, name), "w", encoding="utf-8") as f:
        f.write(short(name.split(".")[0], text))


def functions(options):
    import jax
    from functions import CASES
    from tensors import write_tensors

    values = {}
    for name, (function, args) in CASES.items():
        if options.k not in name:
            continue
        plain, fused = lowered(function, args)
        write(options, name + ".hlo", plain)
        if name not in NOT_FUSED:
            write(options, name + ".fused.hlo", fused)
        for k, x in enumerate(args):
            values["%s/%d" % (name, k)] = entry(x)
        flat = jax.tree.leaves(jax.jit(function)(*args))
        for k, x in enumerate(flat):
            values["%s/output%s" % (name, "_%d" % k if len(flat) > 1 else "")] = entry(x)
    write_tensors(os.path.join(options.out, "values.safetensors"), values)
    return sum(options.k in n for n in CASES)


def collectives(options):
    """NAME.ranks.hlo, and in ranks.safetensors each rank's part of the results."""
    import jax
    from collectives import CASES, shardings
    from tensors import write_tensors

    values = {}
    for name, case in CASES.items():
        if options.k not in name:
            continue
        given, out = shardings(case)
        run = jax.jit(case[0], in_shardings=given, out_shardings=out)
        write(options, name + ".ranks.hlo", compiled_text(run.lower(*case[1]).compile()))
        for k, x in enumerate(case[1]):
            values["%s/%d" % (name, k)] = entry(x)
        flat = jax.tree.leaves(run(*case[1]))
        for k, x in enumerate(flat):
            label = "output" + ("_%d" % k if len(flat) > 1 else "")
            for part in x.addressable_shards:
                rank = list(case[4].devices.flat).index(part.device)
                end = "_rank%d" % rank if rank else ""
                values["%s/%s%s" % (name, label, end)] = entry(part.data)
    write_tensors(os.path.join(options.out, "ranks.safetensors"), values)
    return sum(options.k in n for n in CASES)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("-k", default="", help="functions whose name holds this")
    a.add_argument("-o", "--out", default=os.path.join(HERE, "data"))
    options = a.parse_args()
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    try:
        import jax  # noqa: F401
    except ImportError:
        print("skipped: there is no JAX here")
        return 0
    os.makedirs(options.out, exist_ok=True)
    print("%d functions" % functions(options))
    print("%d functions of eight ranks" % collectives(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
