"""Values that a model's inputs may have by its configuration (docs/capture-format.md,
`domain`)."""

import torch

from .errors import CaptureError

KEYS = {"range", "exclude", "distinct", "sorted", "mask"}
PADDING = (
    "pad_token_id",
    "image_token_id",
    "image_token_index",
    "video_token_id",
    "audio_token_id",
)
POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len")


def of_inputs(module, sets, given=None):
    """Input name to domain: what the configuration of `module` says, and `given`, which goes first.
    `sets`: of each input set, the tensors by name."""
    out = {}
    config = text_config(getattr(module, "config", None))
    for name in sets[0] if config is not None else ():
        values = [s[name] for s in sets if name in s]
        domain = of_name(config, name.rsplit(".", 1)[-1], values)
        if domain:
            out[name] = domain
    for name, domain in (given or {}).items():
        if name not in sets[0]:
            raise CaptureError(
                "there is no input %s to have a domain; there are: %s" % (name, ", ".join(sets[0]))
            )
        unknown = set(domain or {}) - KEYS
        if unknown:
            raise CaptureError(
                "the domain of %s says %s; there are: %s"
                % (name, ", ".join(sorted(unknown)), ", ".join(sorted(KEYS)))
            )
        out[name] = domain
    return {name: d for name, d in out.items() if d}


def text_config(config):
    inner = getattr(config, "text_config", None)
    return inner if inner is not None else config


def number(config, *names):
    for name in names:
        value = getattr(config, name, None)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def within(values, low, high):
    return all(not v.numel() or (int(v.min()) >= low and int(v.max()) <= high) for v in values)


def of_name(config, name, values):
    """None where the configuration says nothing, or the example is none that it admits."""
    whole = not any(v.is_floating_point() or v.is_complex() for v in values)
    if name in ("input_ids", "decoder_input_ids") and whole:
        return of_tokens(config, values)
    if name in ("position_ids", "positions") and whole:
        return up_to(number(config, *POSITIONS), values)
    if name == "token_type_ids" and whole:
        return up_to(number(config, "type_vocab_size"), values)
    if (
        name in ("attention_mask", "decoder_attention_mask")
        and whole
        and all(v.dim() == 2 for v in values)
    ):
        return of_mask(values)
    return None


def up_to(size, values):
    return {"range": [0, size - 1]} if size and within(values, 0, size - 1) else None


def of_tokens(config, values):
    """The vocabulary without padding and what stands for images, as far as the example does without
    them too."""
    domain = up_to(number(config, "vocab_size"), values)
    if domain is None:
        return None
    special = {number(config, name) for name in PADDING} - {None}
    absent = sorted(
        t
        for t in special
        if 0 <= t <= domain["range"][1] and not any(bool((v == t).any()) for v in values)
    )
    if absent and len(absent) < domain["range"][1]:
        domain["exclude"] = absent
    return domain


def of_mask(values):
    """Zeros and ones: padded as the example is, on the right where nothing is."""
    rows = [v.to(torch.int64) for v in values]
    if not within(rows, 0, 1) or any(
        not v.numel() or not bool((v.sum(-1) > 0).all()) for v in rows
    ):
        return None
    if all(bool((v.diff(dim=-1) <= 0).all()) for v in rows):
        return {"mask": "right"}
    return {"mask": "left" if all(bool((v.diff(dim=-1) >= 0).all()) for v in rows) else "any"}
