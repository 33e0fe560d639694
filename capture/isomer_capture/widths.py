"""Any configuration of Transformers made small, whatever its attributes are called: all widths are
divided by one number, in all configurations inside, so that those that have to fit still fit."""

import copy
import re

from . import parts

# Names of widths, and of what looks like one and is none.
WIDTH = re.compile(
    r"hidden_size|hidden_dim|embed_dim|embedding_size|_dims?$|^dim$|^width$|d_model|d_ff|d_inner|"
    r"intermediate_size|ffn_dim|ffn_hidden|inner_dim|n_embd|n_inner|_channels$|^channels$|"
    r"_size_mlp|_widths?$|_filters$|_features$|_sizes$|latents$|_rank$|bottleneck|d_head$"
)
NONE = re.compile(
    r"^num_channels|^in_channels|^in_chans|image|patch|kernel|window|vocab|stride|pool|position|"
    r"batch|num_|^max_|^min_|rope|_heads|layers|mel|groups|^out_indices|audio_channels|crop"
)
DEPTH = re.compile(
    r"^(num_hidden_layers|n_layers?|num_layers|depth|(num_)?(encoder|decoder)_(hidden_)?layers|"
    r"depths|num_(encoder|decoder)_blocks|num_blocks|layer_depths|(num_)?\w+_layers)$"
)
# How many places of an image are picked, or asked about: a small image has no more.
PICKED = re.compile(r"^(\w+_)?num_(\w+_)?(queries|proposals)$")
MOST_PICKED = 9
GROUPS = re.compile(r"groups$")
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


def read(config, name):
    """A setting; None where there is none, or where it is another one in each layer and the whole
    configuration refuses to say one."""
    try:
        return getattr(config, name, None)
    except RuntimeError:
        return None


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
    except Exception:  # computed from others, or checked, by whatever a configuration raises
        pass


def narrowed(config, factor):
    """The same with every width divided by `factor`; those that it does not divide stay."""
    config = copy.deepcopy(config)

    def change(v):
        return v // factor if v >= SMALLEST and v % factor == 0 else v

    for c in inside(config):
        wide = list(attributes(c, WIDTH, NONE))
        # As many groups as channels are one for each of them.
        each = [(n, v) for n, v in attributes(c, GROUPS) if v in [w for _, w in wide]]
        for name, v in wide + each:
            put(c, name, mapped(v, change))
        for name, v in attributes(c, PICKED) if factor > 1 else ():
            put(c, name, mapped(v, lambda e: min(e, MOST_PICKED)))
    return config


def shallow_one(c, layers):
    """The first `layers` layers of every stack, and the entries of lists that are of layers. A
    backbone has as many as the features that it gives."""
    old, names = set(), getattr(c, "stage_names", None)
    given = len(getattr(c, "_out_indices", None) or ()) if names else 0
    for name, v in attributes(c, DEPTH):
        if is_int(v) and v > max(layers, given):
            old.add(v)
            put(c, name, max(layers, given))
        elif of_ints(v):
            put(c, name, mapped(v, lambda e: min(e, layers)))
    if names and len(names) - 1 in old and len(names) > layers + 1:
        last = max(layers, given)
        out = list(range(last - max(given, 1) + 1, last + 1))
        put(c, "stage_names", list(names[: last + 1]))
        put(c, "_out_features", [names[i] for i in out])
        put(c, "_out_indices", out)
    for name, v in list(vars(c).items()):
        if isinstance(v, list) and len(v) in old and not of_ints(v) and "label" not in name:
            put(c, name, v[: max(layers, given)])


def all_features(config):
    """Has each backbone inside give what all of its stages make. Returns: whether one gave less."""
    found = False
    for c in inside(config):
        names = list(getattr(c, "stage_names", None) or ())
        if len(getattr(c, "_out_indices", None) or names[1:]) < len(names) - 1:
            put(c, "_out_features", names[1:])
            put(c, "_out_indices", list(range(1, len(names))))
            found = True
    return found


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


def whole_heads(config):
    """As many heads as divide the width, where a width that was divided no longer is that."""
    for c in inside(config):
        for wide, heads in HEADS:
            width, n = read(c, wide), read(c, heads)
            if is_int(width) and is_int(n) and 0 < n and width % n:
                put(c, heads, max(d for d in range(1, n + 1) if width % d == 0))
    return config


HEADS = (
    ("hidden_size", "num_attention_heads"),
    ("d_model", "num_attention_heads"),
    ("d_model", "encoder_attention_heads"),
    ("d_model", "decoder_attention_heads"),
    ("embed_dim", "num_attention_heads"),
    ("embed_dim", "num_heads"),
)


def small_part(config):
    """A part that nothing made small."""
    return shallow(whole_heads(narrowed(small_images(config), FACTORS[0])), 2)


def likely(config, owner, name):
    """Values for a setting that is None: what another configuration inside says, and what the name
    says, then small numbers."""
    part = parts.value(owner, name)
    if part is not None:
        return [small_part(part)]
    values = [getattr(c, name, None) for c in inside(config) if c is not owner]
    out = [v for v in values if v is not None]
    width, heads = (
        next((v for v in (getattr(owner, n, None) for n in names) if is_int(v) and v), None)
        for names in (("hidden_size", "d_model", "embed_dim"), ("num_attention_heads", "num_heads"))
    )
    if "dropout" in name:
        return [0.0]
    if name.endswith("dtype"):  # None is that of the parameters
        return []
    if name.endswith("key_value_heads") and heads:
        out.insert(0, heads)
    if "head_dim" in name and width and heads:
        out.append(width // heads)
    if WIDTH.search(name) and width:
        out.append(width)
    if name.endswith("layer_types"):
        layers = getattr(owner, "num_hidden_layers", 2)
        return [*out, *([kind] * layers for kind in ("full_attention", "dense"))]
    return [*out, 4, 1, [1, 1], {}]


def entry(config, name, key, usual=(16, 24, 24)):
    """A value for a key that a dictionary of settings lacks: the parts that a head's rotation is
    split into, by time, height and width, in the proportions of the usual ones. None: nothing is
    known of it."""
    if not key.endswith("_section"):
        return None
    heads, width = (
        getattr(config, "num_attention_heads", None),
        getattr(config, "hidden_size", None),
    )
    half = (getattr(config, "head_dim", None) or (width // heads if heads and width else 0)) // 2
    rope = getattr(config, name, None)
    rotated = rope.get("partial_rotary_factor") if isinstance(rope, dict) else None
    half = int(half * (rotated or 1))
    parts = [half * p // sum(usual) for p in usual]
    odd = next((k for k, p in enumerate(usual) if usual.count(p) == 1), 0)
    parts[odd] += half - sum(parts)
    return parts


IMAGE = re.compile(r"image_size$|^img_size$|^input_size$|image_embedding_size$|grid_size$")


def small_images(config):
    """Images of four by four patches, and whatever else is as wide as an image, in pixels or in
    patches, by the same number. Windows of patches keep their sizes."""
    config, whole = copy.deepcopy(config), {}
    for c in inside(config):
        size, patch = getattr(c, "image_size", None), getattr(c, "patch_size", None)
        if of_ints(size):
            size = min(size)
        if not (is_int(size) and is_int(patch) and patch > 0 and size > 4 * patch):
            continue
        at = {size: 4 * patch, size // patch: 4}
        whole.setdefault(size, 4 * patch)
        for name, v in list(attributes(c, IMAGE)):
            small = at[size] * (max(v) // size) if of_ints(v) and min(v) == size else None
            put(c, name, mapped(v, lambda e: at.get(e, small or e)))
    for c in inside(config):  # a patch that is an image for the model inside
        if is_int(getattr(c, "patch_size", None)):
            put(c, "patch_size", whole.get(c.patch_size, c.patch_size))
    return config


FACTORS = (8, 4, 2, 1)


def smaller(config, layers):
    """Configurations to try, the smallest first: small images go with all, or else with none. The
    last ones have all their layers, for models that are not built with fewer."""
    tried = []
    for depth in (layers, None) if layers else (None,):
        for one in (small_images(config), config):
            for factor in FACTORS:
                small = whole_heads(narrowed(one, factor))
                small = shallow(small, depth) if depth else small
                said = small.to_dict()
                if said not in tried:
                    tried.append(said)
                    yield small
