"""Any configuration of Transformers made small, whatever its attributes are called: all widths are
divided by one number, in all configurations inside, so that those that have to fit still fit."""

import copy
import re

# Names of widths, and of what looks like one and is none.
WIDTH = re.compile(
    r"hidden_size|hidden_dim|embed_dim|embedding_size|_dims?$|^dim$|^width$|d_model|d_ff|d_inner|"
    r"intermediate_size|ffn_dim|ffn_hidden|inner_dim|n_embd|n_inner|_channels$|^channels$|"
    r"_size_mlp|_widths?$|_filters$|_features$|_sizes$|latents$|_rank$|bottleneck"
)
NONE = re.compile(
    r"^num_channels|^in_channels|^in_chans|image|patch|kernel|window|vocab|stride|pool|position|"
    r"batch|num_|^max_|^min_|rope|_heads|layers|mel|groups|^out_indices|audio_channels|crop"
)
DEPTH = re.compile(
    r"^(num_hidden_layers|n_layers?|num_layers|depth|(num_)?(encoder|decoder)_(hidden_)?layers|"
    r"depths|num_(encoder|decoder)_blocks|num_blocks|layer_depths|(num_)?\w+_layers)$"
)
SMALLEST = 16


def inside(config):
    """A configuration and all that are inside it, each once."""
    seen, out, todo = set(), [], [config]
    while todo:
        c = todo.pop()
        if id(c) in seen:
            continue
        seen.add(id(c))
        out.append(c)
        todo += [v for v in vars(c).values() if hasattr(v, "to_dict") and hasattr(v, "model_type")]
    return out


def is_int(v):
    return isinstance(v, int) and not isinstance(v, bool)


def of_ints(v):
    return isinstance(v, (list, tuple)) and v and all(is_int(e) for e in v)


def mapped(v, change):
    """A number, or each of a list, in the list's own type."""
    return change(v) if is_int(v) else type(v)(change(e) for e in v)


def attributes(config, pattern, without=None):
    for name, v in list(vars(config).items()):
        if (is_int(v) or of_ints(v)) and pattern.search(name):
            if not (without and without.search(name)):
                yield name, v


def put(config, name, value):
    try:
        setattr(config, name, value)
    except (AttributeError, TypeError, ValueError):
        pass  # computed from others


def narrowed(config, factor):
    """The same with every width divided by `factor`; those that it does not divide stay."""
    config = copy.deepcopy(config)

    def change(v):
        return v // factor if v >= SMALLEST and v % factor == 0 else v

    for c in inside(config):
        for name, v in attributes(c, WIDTH, NONE):
            put(c, name, mapped(v, change))
    return config


def shallow_one(c, layers):
    """The first `layers` layers of every stack, and the entries of lists that are of layers."""
    old = set()
    for name, v in attributes(c, DEPTH):
        if is_int(v) and v > layers:
            old.add(v)
            put(c, name, layers)
        elif of_ints(v):
            put(c, name, mapped(v, lambda e: min(e, layers)))
    for name, v in list(vars(c).items()):
        if isinstance(v, list) and len(v) in old and not of_ints(v) and "label" not in name:
            put(c, name, v[:layers])


def shallow(config, layers):
    for c in inside(config):
        shallow_one(c, layers)
    return config


def shrink_others(config, done, layers):
    """The configurations inside that none of `done` is: of a tower of images or sound, say."""
    for c in inside(config):
        if any(c is d for d in done):
            continue
        for name, v in attributes(c, WIDTH, NONE):
            put(c, name, mapped(v, lambda e: e // 8 if e >= SMALLEST and e % 8 == 0 else e))
        if layers:
            shallow_one(c, layers)


FACTORS = (8, 4, 2, 1)


def smaller(config, layers):
    """Configurations to try, the smallest first."""
    for factor in FACTORS:
        one = narrowed(config, factor)
        yield shallow(one, layers) if layers else one
