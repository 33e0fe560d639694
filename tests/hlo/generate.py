#!/usr/bin/env python3
"""Writes the HLO texts that the tests read, and what JAX computes, from functions.py. Needs JAX
(`pip install jax`); without it nothing is written, and it says so.

    tests/hlo/generate.py [-k NAME] [-o tests/hlo/data]

For each function NAME.hlo is the module as JAX wrote it, NAME.fused.hlo as XLA's CPU compiler left
it; values.safetensors holds NAME/ARGUMENT and NAME/output..."""

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


def main():
    a = argparse.ArgumentParser()
    a.add_argument("-k", default="", help="functions whose name holds this")
    a.add_argument("-o", "--out", default=os.path.join(HERE, "data"))
    options = a.parse_args()
    try:
        import jax
    except ImportError:
        print("skipped: there is no JAX here")
        return 0
    from functions import CASES
    from tensors import write_tensors

    os.makedirs(options.out, exist_ok=True)
    values = {}
    for name, (function, args) in CASES.items():
        if options.k not in name:
            continue
        plain, fused = lowered(function, args)
        for suffix, text in ((".hlo", plain), (".fused.hlo", fused)):
            with open(os.path.join(options.out, name + suffix), "w", encoding="utf-8") as f:
                f.write(short(name, text))
        for k, x in enumerate(args):
            values["%s/%d" % (name, k)] = entry(x)
        flat = jax.tree.leaves(jax.jit(function)(*args))
        for k, x in enumerate(flat):
            values["%s/output%s" % (name, "_%d" % k if len(flat) > 1 else "")] = entry(x)
    write_tensors(os.path.join(options.out, "values.safetensors"), values)
    print("%d functions" % sum(options.k in n for n in CASES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
