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


SYMBOLS = {"batch": "B", "length": "T"}


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


def state_of(cache, counts=()):
    """Tensors of each layer of a cache, by name; what is settled when it is made is left out.
    counts: names of numbers that are another one after another prompt. Such a number goes on as the
    length of a tensor without elements, so that it may be open as sizes are."""
    import torch

    return [
        {
            **{
                k: v for k, v in vars(layer).items() if torch.is_tensor(v) and not k.startswith("_")
            },
            **{k: torch.zeros((getattr(layer, k), 0)) for k in counts if hasattr(layer, k)},
        }
        for layer in cache.layers
    ]


def with_state(cache, state, counts=()):
    """The cache, with these tensors in place of its own: what is written is a copy."""
    out = copy.copy(cache)
    out.layers = [copy.copy(layer) for layer in cache.layers]
    for layer, tensors in zip(out.layers, state):
        for name, tensor in tensors.items():
            setattr(layer, name, tensor.shape[0] if name in counts else tensor.clone())
    return out


def run(model, cache, tokens, state=None, counts=()):
    """(the logits or the last hidden state by name, the cache behind the call)"""
    cache = with_state(cache, state_of(cache) if state is None else state, counts)
    out = model(
        **{model.main_input_name: tokens}, past_key_values=cache, use_cache=True, return_dict=True
    )
    key = next((k for k in ("logits", "last_hidden_state") if k in out), None)
    if key is None or getattr(out, "past_key_values", None) is not cache:
        raise CaptureError("--calls: %s keeps no cache of tokens" % type(model).__name__)
    return {key: out[key]}, cache


def open_dimensions(asked, calls, k, given, others):
    """What stays open of call k's inputs: the dimensions that are others where the prompt is.

    asked: of --dynamic. others: by its words, the same inputs of another prompt."""
    from .files import leaves_of

    out = {}
    for word, (least, largest) in asked.items():
        longer = max(k - 1, 0)  # than the prompt is what lies in the cache
        if word == "length":
            least = max(least - calls + longer, 1)
            largest = None if largest is None else largest - calls + longer
        here, there = (dict(leaves_of(x, "input")) for x in (given, others[word]))
        for name, t in here.items():
            for d in range(t.dim()):
                if t.shape[d] != there[name].shape[d]:
                    out.setdefault(name, {})[d] = (SYMBOLS[word], least, largest)
    return out or None


def counted(cache, other):
    """The numbers that a cache keeps and that are others after another prompt."""
    names = set()
    for layer, beside in zip(cache.layers, other.layers):
        for name, value in vars(layer).items():
            if isinstance(value, (int, float)) and value != getattr(beside, name, value):
                if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                    raise CaptureError(
                        "--calls with --dynamic: %s keeps %s, which is %s after this prompt, and "
                        "no count" % (type(layer).__name__, name, value)
                    )
                names.add(name)
    return names


def shorter(tokens, word):
    """Other tokens, of which there are fewer."""
    return tokens[:, 1:] if word == "length" else tokens[1:]


def of_transformers(model, tokens, options, write):
    """Captures each call. tokens: of each input set. write(folder, call, sets, open dimensions):
    captures one."""
    import inspect

    import torch

    accepts = inspect.signature(type(model).forward).parameters
    if model.main_input_name != "input_ids" or "past_key_values" not in accepts:
        raise CaptureError("--calls: %s keeps no cache of tokens" % type(model).__name__)
    if options.cache == "static" and "length" in options.dynamic:
        raise CaptureError("--dynamic length is for a cache that grows, not --cache static")
    n = len(tokens)
    tokens = tokens + [shorter(tokens[0], word) for word in options.dynamic]
    parts = [split(one, options.calls, 1) for one in tokens]
    caches = [fresh(model, options.cache, one.shape[1]) for one in tokens]
    graphs, counts = [], set()
    with folders(options.out, options.calls + 1) as out, torch.no_grad():
        behind = caches
        for k in range(options.calls + 1):
            behind = [run(model, c, p[k])[1] for p, c in zip(parts, behind)]
            for other in behind[n:]:
                counts |= counted(behind[0], other)
        for k, folder in enumerate(out):
            before = caches[0]

            def call(m, input_ids, cache=None):
                result, behind = run(m, before, input_ids, cache, counts)
                return {**result, "cache": state_of(behind, counts)}

            sets = [
                {"input_ids": p[k], **({"cache": state_of(c, counts)} if k else {})}
                for p, c in zip(parts, caches)
            ]
            others = dict(zip(options.dynamic, sets[n:]))
            names = open_dimensions(options.dynamic, options.calls, k, sets[0], others)
            graphs.append(write(folder, call, sets[:n], names))
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
