"""What the docstring of a model's forward says of its inputs: Transformers writes there the type
and the shape of each, `torch.LongTensor` of shape `(batch_size, sequence_length)`."""

import inspect
import re

ENTRY = re.compile(r"^\s*(\w+) ?\(`*(?:torch\.)?(\w+)[^\n]*?of shape\s*`*\(?([^`\n]*)", re.M)
# `name: in words [batch_size, sequence_length, hidden_size]`, as some write it
BRACKETS = re.compile(r"^\s*(\w+): ([^\n\[]*)\[([\w*, ]+)\]", re.M)
INTEGERS = re.compile(r"(_ids|_idx|_index|_thw|_hw|_shapes|_sizes|_lengths|_lens|_seqlens|ids)$")


class Said:
    """Of one input: its type, `float`, `int` or `bool`, its dimensions' words, or None, whether
    anything says that it is a tensor, or a list of tensors."""

    def __init__(self, kind, dimensions, tensor=True, several=False):
        self.kind, self.dimensions, self.tensor = kind, dimensions, tensor
        self.several = several


# `name: (batch, num_patches, 2) - in words`
ROUND = re.compile(r"^\s*(\w+):() \(([^()\n]*,[^()\n]*)\)", re.M)
MEASURED = re.compile(r"(pixel|input|audio)_(values|features)$")  # no integers, whatever is said


def kind_of(name, text):
    if MEASURED.search(name):
        return "float"
    if "Bool" in text:
        return "bool"
    if "Long" in text or "Int" in text or INTEGERS.search(name):
        return "int"
    return "float"


def dimensions_of(text):
    """The words between the brackets, without the brackets."""
    words = [w.strip(" []()*") for w in text.split(",")]
    return [w for w in words if w] or None


def of_class(cls):
    """{input: Said} of a model's forward; where nothing is said of a shape, the annotation's
    type."""
    out = {}
    for name, p in inspect.signature(cls.forward).parameters.items():
        text = str(p.annotation)
        one = "Tensor" in text and not re.search(r"\b(list|tuple|dict)\b", text.lower())
        several = re.search(r"\blist\[(torch\.)?(Float)?Tensor\]", text) is not None
        out[name] = Said(kind_of(name, text), None, one, several)
    doc = cls.forward.__doc__ or ""
    told = [(name, kind, shape) for name, kind, shape in ENTRY.findall(doc)]
    told += [
        (name, text, shape) for form in (BRACKETS, ROUND) for name, text, shape in form.findall(doc)
    ]
    for name, kind, shape in told:
        if name in out and out[name].dimensions is None:
            kind = kind_of(name, kind + str(out[name].kind == "int" and "Long"))
            out[name] = Said(kind, dimensions_of(shape), several=out[name].several)
    return out


BATCH = re.compile(r"^(text_|image_)?(batch(_size)?|bs)$")
LENGTH = re.compile(
    r"(^|_)(seq|sequence|text|input_ids|time|target|audio)?_?(len|length|seq|steps)$"
)
SIDE = re.compile(r"^(height|width|h|w|(image|frame|img|max)_?(size|height|width))$")
WIDE = re.compile(r"^(hidden_(size|dim)|d_model|embed_dim|feature_dim|channels|dim)$")


def of_tokens(dimensions):
    """Whether these are a batch's tokens, and not several rows of codes for each."""
    product = re.search(r"\bx\b|\*", dimensions[0])
    return len(dimensions) == 2 and not product


def attribute(config, words):
    """The number that a configuration has by this name; dots go inside."""
    from .widths import inside

    path = words.removeprefix("config.").removeprefix("self.").split(".")
    for c in inside(config):
        for part in path:
            c = getattr(c, part, None)
        if isinstance(c, int) and not isinstance(c, bool):
            return c
    return None


def counted(config, name):
    """A count of features of an input: the number of the configuration whose name says so, as
    num_time_features of past_time_features."""
    from .widths import inside

    for c in inside(config):
        for key, v in vars(c).items():
            words = key.split("_")
            if words[0] == "num" and len(words) > 2 and set(words[1:]) <= set(name.split("_")):
                if isinstance(v, int) and not isinstance(v, bool):
                    return v
    return None


def size_of(words, name, config, given):
    """A dimension's size by its words; given: of "batch", "length", "side", "wide", "other"."""
    if words.isdigit():
        return int(words)
    if BATCH.match(words):
        return given["batch"]
    if "features" in words and counted(config, name) is not None:
        return counted(config, name)
    known = attribute(config, words)
    if SIDE.match(words):
        return given["side"]
    if known is not None and known > 0:
        return known
    if LENGTH.search(words):
        return given["length"]
    if WIDE.match(words):
        return given["wide"]
    product = re.split(r"\s*(?:\bx\b|\*)\s*", words)
    if len(product) > 1:
        given = {**given, "side": given.get("grid", given["side"])}  # of places, not of pixels
        sizes = [size_of(p, name, config, given) for p in product if p]
        out = 1
        for s in sizes:
            out *= s
        return out
    return given["other"]


def shape(dimensions, name, config, given):
    return tuple(size_of(w, name, config, given) for w in dimensions)
