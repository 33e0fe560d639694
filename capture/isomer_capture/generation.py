"""The calls of a generation, each a capture of its own: a prompt, then tokens with the cache.

State goes from call to call as tensors: outputs of one, inputs of the next, under one name
(docs/calls.md)."""

import contextlib
import copy
import os
import shutil
import tempfile

from .errors import CaptureError


@contextlib.contextmanager
def folders(out, n):
    """A folder for each of n captures, which become `out`/1, `out`/2 and so on once all are
    there."""
    out = os.path.abspath(out)
    if os.path.isfile(out) or os.path.exists(os.path.join(out, "graph.json")):
        raise CaptureError("%s exists and is no folder of calls; name another folder" % out)
    os.makedirs(os.path.dirname(out), exist_ok=True)
    part = tempfile.mkdtemp(prefix=".calls-", dir=os.path.dirname(out))
    try:
        names = [str(k + 1) for k in range(n)]
        yield [os.path.join(part, name) for name in names]
        os.makedirs(out, exist_ok=True)
        for name in names:
            shutil.rmtree(os.path.join(out, name), ignore_errors=True)
            os.rename(os.path.join(part, name), os.path.join(out, name))
    finally:
        shutil.rmtree(part, ignore_errors=True)


def split(tokens, n, dim):
    """The prompt's tokens, then n times one."""
    length = tokens.shape[dim]
    if length <= n:
        raise CaptureError("--calls %d: there are only %d tokens" % (n, length))
    return list(tokens.split([length - n] + [1] * n, dim))


# ---- caches of Transformers ----


def fresh(model, kind, length):
    """A cache before the first call: as the model makes it, or of `length` places."""
    import transformers

    config = model.config.get_text_config(decoder=True)
    if kind == "static":
        return transformers.StaticCache(config=config, max_cache_len=length)
    return transformers.DynamicCache(config=config)


def state_of(cache):
    """Tensors of each layer of a cache, by name; what is settled when it is made is left out."""
    import torch

    return [
        {k: v for k, v in vars(layer).items() if torch.is_tensor(v) and not k.startswith("_")}
        for layer in cache.layers
    ]


def with_state(cache, state):
    """The cache, with these tensors in place of its own: what is written is a copy."""
    out = copy.copy(cache)
    out.layers = [copy.copy(layer) for layer in cache.layers]
    for layer, tensors in zip(out.layers, state):
        for name, tensor in tensors.items():
            setattr(layer, name, tensor.clone())
    return out


def run(model, cache, tokens, state=None):
    """(the logits or the last hidden state by name, the cache behind the call)"""
    cache = with_state(cache, state_of(cache) if state is None else state)
    out = model(
        **{model.main_input_name: tokens}, past_key_values=cache, use_cache=True, return_dict=True
    )
    key = next((k for k in ("logits", "last_hidden_state") if k in out), None)
    if key is None or getattr(out, "past_key_values", None) is not cache:
        raise CaptureError("--calls: %s keeps no cache of tokens" % type(model).__name__)
    return {key: out[key]}, cache


def of_transformers(model, tokens, options, write):
    """Captures each call. tokens: of each input set. write(folder, call, sets): captures one."""
    import inspect

    import torch

    accepts = inspect.signature(type(model).forward).parameters
    if model.main_input_name != "input_ids" or "past_key_values" not in accepts:
        raise CaptureError("--calls: %s keeps no cache of tokens" % type(model).__name__)
    parts = [split(one, options.calls, 1) for one in tokens]
    caches = [fresh(model, options.cache, one.shape[1]) for one in tokens]
    graphs = []
    with folders(options.out, options.calls + 1) as out, torch.no_grad():
        for k, folder in enumerate(out):
            before = caches[0]

            def call(m, input_ids, cache=None):
                result, after = run(m, before, input_ids, cache)
                return {**result, "cache": state_of(after)}

            sets = [
                {"input_ids": p[k], **({"cache": state_of(c)} if k else {})}
                for p, c in zip(parts, caches)
            ]
            graphs.append(write(folder, call, sets))
            caches = [run(model, c, p[k])[1] for p, c in zip(parts, caches)]
    return graphs[0]


# ---- vLLM's pages ----


def of_vllm(model, call, output, sets, options, write):
    """The same. call(model, **inputs): one call, which gives `output`; write(folder, call, sets,
    names)."""
    import torch

    from .vllm_attention import Pages, ReferenceAttention

    parts = [{n: split(t, options.calls, 0) for n, t in one.items()} for one in sets]
    held, graphs = [None] * len(sets), []
    length = sets[0]["input_ids"].shape[0]

    def runner(done):
        def run(m, cache=None, **inputs):
            ReferenceAttention.pages = Pages(length, options.seed, done, cache)
            try:
                result = call(m, **inputs)
                return {output: result, "cache": ReferenceAttention.pages.held}
            finally:
                ReferenceAttention.pages = None

        return run

    with folders(options.out, options.calls + 1) as out, torch.no_grad():
        for k, folder in enumerate(out):
            run = runner(sum(len(p) for p in parts[0]["input_ids"][:k]))
            given = [
                {**{n: p[k] for n, p in one.items()}, **({"cache": h} if k else {})}
                for one, h in zip(parts, held)
            ]
            graphs.append(write(folder, run, given, None))
            held = [run(model, **one)["cache"] for one in given]
    return graphs[0]
