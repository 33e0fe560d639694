"""Example inputs of models of Transformers by their kinds: tokens, images, videos, sound, series.
What a model needs beside its main input is found by running it."""

import inspect

from .errors import CaptureError, short

FRAMES, SAMPLES, GRID = 2, 1600, 4


def values_of(config, *names):
    """The first attribute of a configuration, or of one inside it, that is a number or a pair."""
    from .widths import inside

    for c in inside(config):
        for name in names:
            v = getattr(c, name, None)
            if isinstance(v, (list, tuple)) and v and all(isinstance(e, int) for e in v):
                return list(v)
            if isinstance(v, int) and not isinstance(v, bool):
                return [v]
    return None


def number(config, default, *names):
    v = values_of(config, *names)
    return v[0] if v else default


class Kinds:
    """Makers of inputs by name; each gives shapes to try, the likeliest first."""

    def __init__(self, config, options):
        self.config, self.options, self.batch = config, options, options.batch

    def sizes(self):
        size = values_of(self.config, "image_size", "img_size", "input_size", "train_image_size")
        size = (size * 2)[:2] if size else [64, 64]
        out = [size] if max(size) <= 512 else []
        return [*out, [64, 64], [32, 32], [224, 224], *([size] if size and size not in out else [])]

    def images(self):
        channels = number(self.config, 3, "num_channels", "in_channels", "in_chans")
        frames = number(self.config, FRAMES, "num_frames", "frames_per_clip")
        plain = [(self.batch, channels, *s) for s in self.sizes()]
        video = [(self.batch, frames, channels, *s) for s in self.sizes()[:1]]
        has_frames = values_of(self.config, "num_frames", "frames_per_clip")
        return [*(video + plain if has_frames else plain + video), self.patches()]

    def patches(self):
        """Of one image, laid out one after another."""
        channels = number(self.config, 3, "num_channels", "in_channels", "in_chans")
        frames = number(self.config, 1, "temporal_patch_size")
        return GRID * GRID, channels * frames * number(self.config, 14, "patch_size") ** 2

    def sound(self):
        mels = number(self.config, 80, "num_mel_bins", "input_feat_per_channel", "n_mels")
        length = number(self.config, 64, "max_length", "max_source_positions")
        return [
            (self.batch, SAMPLES),
            (self.batch, 1, SAMPLES),
            (self.batch, min(length, 1024), mels),
            (self.batch, 2, SAMPLES),
        ]

    def features(self):
        mels = number(
            self.config, 80, "num_mel_bins", "input_feat_per_channel", "input_dim", "n_mels"
        )
        wide = number(self.config, mels, "feature_projection_input_dim", "input_feat_size")
        length = number(self.config, 32, "max_source_positions")
        return [
            (self.batch, mels, 2 * length),
            (self.batch, 64, mels),
            (self.batch, mels, 64),
            (self.batch, 64, wide),
            (self.batch, 1, 1001, mels),
        ]

    def series(self):
        length = number(self.config, 32, "context_length", "seq_length")
        lags = values_of(self.config, "lags_sequence") or [0]
        wide = number(self.config, 1, "num_input_channels", "input_size")
        return [
            (self.batch, length, wide),
            (self.batch, length + max(lags)),
            (self.batch, length + max(lags), wide),
        ]

    def shapes(self, name):
        length = self.options.length
        wide = number(self.config, 64, "hidden_size", "d_model", "embed_dim")
        return {
            "pixel_values": self.images,
            "prompt_pixel_values": self.images,
            "prompt_masks": self.images,
            "pixel_values_videos": self.images,
            "input_values": self.sound,
            "input_features": self.features,
            "audio_values": self.sound,
            "past_values": self.series,
            "spectrogram": self.features,
            "hidden_states": lambda: [self.patches(), (self.batch, length, wide)],
            "inputs_embeds": lambda: [(self.batch, length, wide)],
            "encoder_hidden_states": lambda: [(self.batch, length, wide)],
        }.get(name, lambda: [])()

    def tensors(self, name):
        """Values to try for an input; none: nothing is known of its name."""
        import torch

        from .configs import token_sets

        o = self.options
        if name.endswith("input_ids"):
            return [token_sets(self.config, o.length, 1, o.seed + (name[0] == "d"), o.batch)[0]]
        if name == "bbox":
            corner = torch.arange(o.length).reshape(1, -1, 1).expand(o.batch, -1, 4) * 7
            return [corner + torch.tensor([0, 0, 40, 30])]
        if name.endswith("grid_thw"):
            return [torch.tensor([[1, GRID, GRID]])]
        if name.endswith("attention_mask") or name == "past_observed_mask":
            return [torch.ones(o.batch, o.length, dtype=torch.int64)]
        generator = torch.Generator().manual_seed(o.seed + 1)
        dtype = getattr(torch, o.dtype)
        return [torch.randn(s, generator=generator).to(dtype) for s in self.shapes(name)]


# What a model may want beside its main input, the likeliest first.
BESIDE = (
    "decoder_input_ids",
    "bbox",
    "pixel_values",
    "input_ids",
    "input_values",
    "input_features",
    "image_grid_thw",
    "encoder_hidden_states",
    "hidden_states",
    "attention_mask",
)


def choices(model, config, options):
    """Sets of names of inputs to try, and for each the values: small sets first."""
    accepts = inspect.signature(type(model).forward).parameters
    needed = [
        n
        for n, p in accepts.items()
        if n != "self" and p.default is p.empty and p.kind == p.POSITIONAL_OR_KEYWORD
    ]
    main = model.main_input_name
    if main not in accepts and needed:
        main = needed[0]
    first = [main, *(n for n in needed if n != main)]
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in accepts:
        first += [n for n in ("decoder_input_ids",) if n not in first]
    beside = [n for n in BESIDE if n in accepts and n not in first]
    yield first
    for name in beside:
        yield [*first, name]
    for k in range(2, len(beside) + 1):
        yield first + beside[:k]
    for name in (n for n in ("input_values", "input_features", "pixel_values") if n in accepts):
        yield [name]


def goes(model, inputs, call):
    """Whether the model runs on these. What it says where it does not is found again below."""
    import torch

    try:
        with torch.no_grad():
            call(model, **inputs)
        return True
    except Exception:  # whatever a model raises
        return False


def found(model, config, options, call):
    """Example inputs that the model runs on. Raises CaptureError with what it said of the first."""
    import torch

    kinds, first = Kinds(config, options), None
    for names in choices(model, config, options):
        values = {}
        try:
            for n in names:
                values[n] = kinds.tensors(n)
        except CaptureError as e:
            first = first or e
            continue
        if not all(values.values()):
            lacking = ", ".join(n for n in names if not values[n])
            first = first or CaptureError(
                "no example is known for the input %s; capture it from Python, with example "
                "inputs (docs/capture-python.md)" % lacking
            )
            continue
        for k in range(max(len(v) for v in values.values())):
            one = {n: v[min(k, len(v) - 1)] for n, v in values.items()}
            try:
                with torch.no_grad():
                    call(model, **one)
                return one
            except Exception as e:  # whatever a model raises
                first = first or CaptureError("the model does not run: %s" % short(e))
    raise first
