"""Configurations of Transformers: found, changed by `--set`, made small by `--reduce`, and models
of them with random weights that are drawn from the seed alone."""

import copy
import json
import math
import os
import re

from . import depth, parts, widths
from .errors import CaptureError, short

HEAD = 16  # width of a head in a reduced model; a quarter of it is still even
VOCABULARY = 160
# vLLM makes tables of tokens longer, up to a multiple of this. A vocabulary that is one already
# stays one, so that the small model has the operators of the large one.
PADDED = 64
WHOLE_VOCABULARY = 3 * PADDED
BYTES = 512  # a vocabulary of bytes, whose special tokens stand in code, has no more
POSITIONS = 64
PLACEHOLDER = re.compile(r"((?:image|video|audio|vision)\w*)_token_(?:id|index)$")
WINDOW = 4  # shorter than the default length, so that it shows


def parse_set(text):
    """KEY=VALUE; the value is JSON, or else a string."""
    key, eq, value = text.partition("=")
    if not eq or not key:
        raise CaptureError("--set takes KEY=VALUE, not %r" % text)
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value


def load_config(name):
    """A folder with config.json, a JSON file, a model type such as `llama`, or a hub id (the one
    use of the network)."""
    from transformers import AutoConfig
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    path = os.path.join(name, "config.json") if os.path.isdir(name) else name
    try:
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as f:
                data = json.load(f)
            kind = data.pop("model_type", None)
            if kind not in CONFIG_MAPPING:
                raise CaptureError(
                    "%s: model_type %r is not one that Transformers knows" % (path, kind)
                )
            return CONFIG_MAPPING[kind].from_dict(data), os.path.dirname(path) if os.path.isdir(
                name
            ) else None
        if name in CONFIG_MAPPING:
            return with_text(default(CONFIG_MAPPING[name])), None
        if "/" in name and not os.path.isabs(name) and not name.startswith("."):
            return AutoConfig.from_pretrained(name), name
    except CaptureError:
        raise
    except (json.JSONDecodeError, UnicodeDecodeError) as e:
        raise CaptureError("%s is not JSON, as a model's config.json is" % path) from e
    except Exception as e:
        raise CaptureError("%s: %s" % (name, short(e))) from e
    raise CaptureError(
        "%s is no folder with config.json, no JSON file, no model type that Transformers knows, "
        "and no hub id (owner/name)" % name
    )


def default(config_class):
    """A configuration as its class makes it, of plain parts where it cannot do without being told
    of them; with lists where it has tuples, as one that is read from a file."""
    try:
        config = config_class()
    except Exception:  # whatever it raises
        if not parts.unsaid(config_class):
            raise
        config = parts.whole(config_class)
    for c in widths.inside(config):
        for name, v in list(vars(c).items()):
            if isinstance(v, tuple):
                widths.put(c, name, list(v))
    return config


def with_tuples(config):
    """Puts tuples where the class of a configuration has them and it has lists, for models that add
    them to shapes. Returns: whether there were any."""
    found = False
    for c in widths.inside(config):
        try:
            fresh = vars(type(c)())
        except Exception:  # whatever it raises
            continue
        for name, v in list(vars(c).items()):
            if isinstance(v, list) and isinstance(fresh.get(name), tuple):
                widths.put(c, name, tuple(v))
                found = True
    return found


def with_text(config):
    """The same, with the configuration of its language model where it has none and no width of its
    own either."""
    made = (getattr(config, "sub_configs", None) or {}).get("text_config")
    if made is None or text_config(config) is not config or not hasattr(made, "model_type"):
        return config
    if get(config, "hidden_size", "n_embd", "d_model")[0] is not None:
        return config
    return type(config)(text_config=made())


def text_config(config):
    """The configuration of the language model inside."""
    inner = getattr(config, "text_config", None)
    return inner if inner is not None else config


def set_key(config, key, value):
    """key may go into nested configurations and dictionaries with dots; a key that is unknown is an
    error."""
    *path, last = key.split(".")
    at = config
    for part in path:
        at = at.get(part) if isinstance(at, dict) else getattr(at, part, None)
        if at is None:
            raise CaptureError("the configuration has no %s" % key)
    if isinstance(at, dict):
        at[last] = value
        return
    if not hasattr(at, last):
        raise CaptureError("the configuration (%s) has no %s" % (type(at).__name__, key))
    setattr(at, last, value)


def get(config, *names):
    for n in names:
        v = widths.read(config, n)
        if v is not None:
            return n, v
    return None, None


def layers_name(config):
    return get(config, "num_hidden_layers", "n_layer", "n_layers", "num_layers")[0]


def set_layers(config, layers):
    """Leaves so many layers, one of each kind first. Returns: what to say of it, or None."""
    config = text_config(config)
    name = layers_name(config)
    if name is None:
        raise CaptureError("%s does not say how many layers it has" % type(config).__name__)
    return depth.keep(config, name, layers)


def reduce(config):
    """Small widths and vocabulary, the same structure: layers, head grouping, windows, experts and
    flags stay."""
    c = text_config(config)
    _, heads = get(c, "num_attention_heads", "n_head", "n_heads", "num_heads")
    hidden_name, hidden = get(c, "hidden_size", "n_embd", "d_model")
    if heads is None or hidden is None:
        raise CaptureError("--reduce does not know the widths of %s" % type(c).__name__)
    explicit = getattr(c, "head_dim", None)
    new_heads = 4
    # Where heads * head_dim differs from the hidden size, as in Gemma, it still does.
    new_hidden = new_heads * HEAD + (
        32 if isinstance(explicit, int) and explicit * heads != hidden else 0
    )

    def put(names, value):
        name, old = get(c, *names)
        if name is not None and isinstance(old, int) and not isinstance(old, bool):
            setattr(c, name, value(old) if callable(value) else value)

    put(
        ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"),
        lambda old: 4 * new_hidden if old == 4 * hidden else new_hidden * 2 + 8,
    )
    for extra in (
        "moe_intermediate_size",
        "shared_expert_intermediate_size",
        "shared_intermediate_size",
        "intermediate_size_mlp",
    ):
        put((extra,), new_hidden // 2)
    put(
        ("num_key_value_heads", "num_kv_heads", "n_head_kv"),
        lambda old: new_heads if old >= heads else 1 if old == 1 else 2,
    )
    if explicit is not None and not isinstance(getattr(type(c), "head_dim", None), property):
        c.head_dim = HEAD
    reduce_latent(c)
    reduce_state_space(c, new_hidden)
    put(("global_head_dim",), HEAD)
    put(
        ("rotary_dim",), lambda old: HEAD if explicit == old or old * heads == hidden else HEAD // 2
    )
    put(
        ("word_embed_proj_dim", "embedding_size"),
        lambda old: new_hidden if old == hidden else new_hidden // 2,
    )
    if isinstance(getattr(c, "query_pre_attn_scalar", None), (int, float)) and explicit is not None:
        c.query_pre_attn_scalar = HEAD if c.query_pre_attn_scalar == explicit else HEAD // 2
    if getattr(c, "attention_multiplier", None) is not None and explicit is None and hidden:
        if abs(c.attention_multiplier * (hidden // heads) - 1) < 1e-6:
            c.attention_multiplier = 1.0 / HEAD
    setattr(c, hidden_name, new_hidden)
    setattr(c, get(c, "num_attention_heads", "n_head", "n_heads", "num_heads")[0], new_heads)
    put(
        ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
        lambda old: min(old, 4),
    )
    # Three where there are more: 2 is what other sizes are multiples of. Of groups, as below, two.
    most = 3 if getattr(c, "n_group", None) is None else 2
    put(("num_experts_per_tok", "moe_top_k", "top_k_experts"), lambda old: min(old, most))
    put(
        ("n_group",), lambda old: min(old, 2)
    )  # of two experts each: some rules look at the best two of a group
    put(("topk_group",), lambda old: 1)
    if getattr(c, "sliding_window", None):
        c.sliding_window = min(c.sliding_window, WINDOW)
    reduce_positions(c)
    reduce_vocabulary(config)
    reduce_images(config)
    return config


def reduce_latent(c):
    """Multi-head latent attention: ranks of the compressed q and kv, and widths of a head's parts
    with and without rotation."""
    if not isinstance(getattr(c, "kv_lora_rank", None), int):
        return
    rotated = getattr(c, "qk_rope_head_dim", None)
    for name, value in (
        ("kv_lora_rank", 2 * HEAD),
        ("q_lora_rank", 3 * HEAD // 2),
        ("qk_nope_head_dim", HEAD),
        ("v_head_dim", HEAD),
        ("qk_rope_head_dim", HEAD // 2),
        ("qk_head_dim", HEAD + HEAD // 2),
    ):
        if isinstance(getattr(c, name, None), int) and not isinstance(
            getattr(type(c), name, None), property
        ):
            setattr(c, name, value)
    if rotated is not None and not isinstance(getattr(type(c), "head_dim", None), property):
        c.head_dim = c.qk_rope_head_dim  # what the rotary tables are made for


def reduce_state_space(c, hidden):
    """The layers of a hybrid that scan: heads that fit the new width, a state as wide as a head,
    and chunks that are shorter than the sequence, so that one is carried into the next."""
    if not isinstance(getattr(c, "mamba_n_heads", None), int):
        return
    inner = int(getattr(c, "mamba_expand", None) or 2) * hidden
    for name, value in (
        ("mamba_n_heads", inner // HEAD),
        ("mamba_d_ssm", inner),
        ("mamba_d_head", HEAD),
        ("mamba_d_state", HEAD),
        ("mamba_chunk_size", WINDOW),
    ):
        if getattr(c, name, None) is not None:
            setattr(c, name, value)
    if isinstance(getattr(c, "mamba_n_groups", None), int):
        c.mamba_n_groups = min(2, c.mamba_n_groups)


def reduce_positions(c):
    for name in (
        "max_position_embeddings",
        "n_positions",
        "n_ctx",
        "max_seq_len",
        "seq_length",
        "max_sequence_length",
    ):
        old = getattr(c, name, None)
        if isinstance(old, int) and old > POSITIONS:
            # A length beyond the trained one is what scaled rotary tables are about: it stays
            # beyond.
            setattr(c, name, POSITIONS)
    for name in ("rope_scaling", "rope_parameters"):
        rope = getattr(c, name, None)
        for one in [rope] + list(rope.values()) if isinstance(rope, dict) else []:
            for key in ("short_factor", "long_factor"):
                if isinstance(one, dict) and isinstance(one.get(key), list):
                    factor = (
                        one.get("partial_rotary_factor")
                        or getattr(c, "partial_rotary_factor", 1.0)
                        or 1.0
                    )
                    one[key] = one[key][: int(HEAD * factor) // 2]
            if isinstance(one, dict) and isinstance(
                one.get("original_max_position_embeddings"), int
            ):
                one["original_max_position_embeddings"] = min(
                    POSITIONS // 2, one["original_max_position_embeddings"]
                )
    if isinstance(getattr(c, "original_max_position_embeddings", None), int):
        c.original_max_position_embeddings = min(POSITIONS // 2, c.original_max_position_embeddings)


def reduce_images(config):
    """Images of four by four patches. Windows of patches have sizes of their own, which stay."""
    size, patch = getattr(config, "image_size", None), getattr(config, "patch_size", None)
    if not isinstance(patch, int) or (isinstance(size, int) and hasattr(config, "window_size")):
        return
    if isinstance(size, int):
        config.image_size = min(size, 4 * patch)
    elif isinstance(size, list) and all(isinstance(s, int) for s in size):
        config.image_size = [min(s, 4 * patch * (s // min(size))) for s in size]


def reduce_vocabulary(config):
    for c in {id(x): x for x in (config, text_config(config))}.values():
        if isinstance(getattr(c, "vocab_size", None), int) and c.vocab_size > BYTES:
            c.vocab_size = VOCABULARY if c.vocab_size % PADDED else WHOLE_VOCABULARY
        for k, name in enumerate(
            ("pad_token_id", "bos_token_id", "eos_token_id", "sep_token_id", "cls_token_id")
        ):
            old = getattr(c, name, None)
            size = getattr(c, "vocab_size", None) or VOCABULARY  # None: the tokenizer's
            if isinstance(old, int) and old >= size:
                setattr(c, name, k)
            elif isinstance(old, list) and any(t >= size for t in old):
                setattr(c, name, [k])
    reduce_placeholders(config)


def reduce_placeholders(config):
    """Tokens that stand for parts of images and sound: the last ones of the small vocabulary, the
    same for the same name."""
    names = {}
    for c in widths.inside(config):
        for name in [n for n in vars(c) if PLACEHOLDER.search(n)]:
            old = getattr(c, name)
            if old is None or (isinstance(old, int) and old >= VOCABULARY):
                k = names.setdefault(PLACEHOLDER.search(name).group(1), len(names) + 1)
                widths.put(c, name, VOCABULARY - k)


def draw(model, seed):
    """Random values for every parameter. Norms and biases are drawn too, so that leaving one out
    shows."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            noise = torch.randn(p.shape, generator=generator, dtype=torch.float32)
            if p.dim() < 2:
                centre = 1.0 if p.numel() and bool((p == 1).all()) else 0.0
                value = centre + 0.2 * noise
            elif "embed" in name or name.endswith(("wte.weight", "wpe.weight")):
                value = 0.7 * noise
            else:
                value = noise / math.sqrt(p.shape[-1])
            p.copy_(value.to(p.dtype))
        for name, b in sorted(model.named_buffers()):
            if name.endswith("running_mean"):
                b.copy_(0.2 * torch.randn(b.shape, generator=generator))
            elif name.endswith("running_var"):
                b.copy_(1 + 0.2 * torch.rand(b.shape, generator=generator))
    if hasattr(model, "tie_weights"):
        model.tie_weights()


def input_sets(config, model, options, call):
    """Sets of example inputs by name: token ids, or images, or what the kind of the model reads
    (search.py)."""
    import inspect

    from . import search

    name = getattr(model, "main_input_name", None)
    accepts = inspect.signature(type(model).forward).parameters
    plain = name in ("input_ids", "pixel_values") and name in accepts
    try:
        if plain and name == "pixel_values":
            sets = image_sets(config, options)
        elif plain:
            sets = token_sets(config, options.length, options.sets, options.seed, options.batch)
        else:
            sets = []
        if sets and search.goes(model, {name: sets[0]}, call):
            return [{name: one} for one in sets]
    except CaptureError:
        pass  # other kinds are tried
    seeds = [copy.copy(options) for _ in range(options.sets)]
    for k, one in enumerate(seeds):
        one.seed = options.seed + 2 * k
    return [search.found(model, config, one, call) for one in seeds]


def image_sets(config, options):
    import torch

    size, channels = getattr(config, "image_size", None), getattr(config, "num_channels", 3)
    size = [size, size] if isinstance(size, int) else list(size or ())
    if len(size) != 2:
        raise CaptureError("%s does not say how large its images are" % type(config).__name__)
    generator = torch.Generator().manual_seed(options.seed + 1)
    shape, dtype = (options.batch, channels, *size), getattr(torch, options.dtype)
    return [torch.randn(shape, generator=generator).to(dtype) for _ in range(options.sets)]


def token_sets(config, length, sets, seed, batch=1):
    """Token ids, [batch, length] each, from the seed; the special tokens of the configuration are
    left out."""
    import torch

    c = text_config(config)
    if not isinstance(getattr(c, "vocab_size", None), int):
        raise CaptureError(
            "%s has no vocabulary: `hf` captures models that read tokens or images; another one "
            "from Python, with example inputs (docs/capture-python.md)" % type(c).__name__
        )
    special = set()
    for name in ("pad_token_id", "image_token_id"):
        if isinstance(getattr(c, name, None), int):
            special.add(getattr(c, name))
    allowed = torch.tensor([t for t in range(int(c.vocab_size)) if t not in special][: 1 << 20])
    generator = torch.Generator().manual_seed(seed + 1)
    return [
        allowed[torch.randint(len(allowed), (batch, length), generator=generator)]
        for _ in range(sets)
    ]
