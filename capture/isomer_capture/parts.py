"""Configurations that are made of others, and say of some of these only that there is one: of a
tower of images, of a decoder. Each gets that of a plain model of its kind."""

import re

# A word of the whole's type or of the part's name, and the type of a plain model of this kind.
PLAIN = (
    ("vision|image", "vit"),
    ("speech", "wav2vec2"),
    ("audio", "encodec"),
    ("encoder|text", "bert"),
)
CROSSED = {"is_decoder": True, "add_cross_attention": True}


def said(config_class):
    """{name: class} of the parts that a class of configurations says it has; where that is a
    property, only a configuration says it, and its class says nothing."""
    parts = getattr(config_class, "sub_configs", None)
    return parts if isinstance(parts, dict) else {}


def unsaid(config_class):
    """Names of the parts that may be of any class."""
    return [name for name, cls in said(config_class).items() if cls.__name__ == "AutoConfig"]


def plain(config_class, name):
    """The words of a plain configuration for such a part; None: nothing is known of it."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    if "decoder" in name:
        kind, more = "bert", CROSSED
    else:
        # Of what an encoder is one, the whole says.
        words = config_class.model_type + " " + name if name == "encoder" else name
        kind = next((k for pattern, k in PLAIN if re.search(pattern, words)), None)
        more = {}
    return kind and {**CONFIG_MAPPING[kind](**more).to_dict(), "model_type": kind}


def whole(config_class):
    """A configuration of plain parts, where there is none without parts."""
    given = {name: plain(config_class, name) for name in unsaid(config_class)}
    others = {n: cls().to_dict() for n, cls in said(config_class).items() if n not in given}
    return config_class(**{n: v for n, v in given.items() if v}, **others)


def value(owner, name):
    """A configuration for a part that is None; None where it is no such part."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    words = plain(type(owner), name) if name in unsaid(type(owner)) else None
    return words and CONFIG_MAPPING[words.pop("model_type")].from_dict(words)
