"""Example inputs of models of Transformers by their kinds: tokens, images, videos, sound, series.
Which of them a model needs, and which shape it takes, is found by running it (search.py)."""

import math
import re

from . import documented
from .errors import CaptureError

FRAMES, SAMPLES, GRID = 2, 1600, 4


def values_of(config, *names):
    """The first attribute of a configuration, or of one inside it, that is a number or a pair."""
    from .widths import inside, read

    for c in inside(config):
        for name in names:
            v = read(c, name)
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

    def __init__(self, config, options, said=None):
        """said: what a docstring says of inputs, by name (documented.py)."""
        self.config, self.options, self.batch = config, options, options.batch
        self.said = said or {}

    def sizes(self):
        size = values_of(self.config, "image_size", "img_size", "input_size", "train_image_size")
        size = (size * 2)[:2] if size else [64, 64]
        out = [size] if max(size) <= 512 else []
        return [
            *out,
            [64, 64],
            [32, 32],
            [224, 224],
            [256, 256],
            *([size] if size and size not in out else []),
        ]

    def images(self):
        channels = number(self.config, 3, "num_channels", "in_channels", "in_chans")
        frames = number(self.config, FRAMES, "num_frames", "frames_per_clip")
        plain = [(self.batch, channels, *s) for s in self.sizes()]
        video = [(self.batch, frames, channels, *s) for s in self.sizes()[:1]]
        has_frames = values_of(self.config, "num_frames", "frames_per_clip")
        patches = self.patches()
        return [*(video + plain if has_frames else plain + video), patches, (self.batch, *patches)]

    def patches(self):
        """Of one image, laid out one after another."""
        channels = number(self.config, 3, "num_channels", "in_channels", "in_chans")
        frames = number(self.config, 1, "temporal_patch_size")
        side = number(self.config, 14, "model_patch_size", "patch_size")
        return GRID * GRID, channels * frames * side**2

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
            "image": self.images,
            "flattened_patches": lambda: [(self.batch, self.patches()[0], self.patches()[1] + 2)],
            "hidden_states": lambda: [
                self.patches(),
                (self.batch, length, wide),
                (self.batch, wide, GRID, GRID),
            ],
            "inputs_embeds": lambda: [(self.batch, length, wide)],
            "encoder_hidden_states": lambda: [(self.batch, length, wide)],
        }.get(name, lambda: [])()

    def length(self, name):
        """Of the sequence that an input is, where nothing else says it."""
        if not name.startswith("past_"):
            return self.options.length
        lags = values_of(self.config, "lags_sequence") or [0]
        return number(self.config, 32, "context_length", "seq_length") + max(lags)

    def documented(self, name):
        """Shapes by what the model's docstring says of it. The count that nothing tells is one, or
        that of the patches of an image."""
        said = self.said.get(name)
        if said is None or said.dimensions is None:
            return []
        wide = number(self.config, 64, "hidden_size", "d_model", "embed_dim")
        known = {"batch": self.batch, "length": self.length(name), "wide": wide, "grid": GRID}
        out = []
        for other in (1, GRID * GRID):
            for side in self.sizes():
                at = {**known, "side": side[0], "other": other}
                out.append(documented.shape(said.dimensions, name, self.config, at))
        if said.kind == "float" and len(said.dimensions) == 2:
            out.append((self.batch, SAMPLES))  # numbers in a row are sound
        return list(dict.fromkeys(out))

    def beside(self, given):
        """Shapes of what goes with an input that is already there: one entry for each step of a
        sequence, for each pixel, for each patch."""
        out = []
        for t in given.values():
            out += [tuple(t.shape[:2]), (t.shape[0], t.shape[-1]), tuple(t.shape[-1:])]
            if t.dim() >= 4:
                side = t.shape[-1] // number(self.config, 1, "patch_size", "stride")
                out += [(t.shape[0], *t.shape[-2:]), (t.shape[0], side * side)]
        return list(dict.fromkeys(out))

    def on_grid(self, name):
        """Whether an input has the places of patches, each by its column and its row."""
        return re.search("(pixel|image|patch)_position_ids$", name)

    def integers(self, name, shape):
        """Values that may stand in an input of integers, by its name."""
        import torch

        n = shape[-1]
        if "mask" in name:
            return torch.ones(shape, dtype=torch.int64)
        if self.on_grid(name) and shape[-1] == 2:
            at = torch.arange(shape[-2])
            return torch.stack((at % GRID, at // GRID), -1).expand(shape).clone()
        if "position" in name:
            return torch.arange(n).expand(shape).clone()
        if re.search("len|duration", name):
            return torch.full(shape, self.options.length)
        if re.search("size|shape|_hw", name):
            return torch.full(shape, self.sizes()[0][0] if "size" in name else GRID)
        if "input_ids" in name:
            return torch.arange(3, 3 + math.prod(shape)).reshape(shape) % 16
        return torch.zeros(shape, dtype=torch.int64)

    def known(self, name):
        """Values of inputs that have a form of their own; none: the name is not known."""
        import torch

        from .configs import token_sets

        o = self.options
        said = self.said.get(name)
        plain = said is None or said.dimensions is None or documented.of_tokens(said.dimensions)
        if name.endswith("input_ids") and plain:
            few = torch.arange(o.length).expand(o.batch, -1) * 7 % 16 + 1
            try:
                seed = o.seed + (name[0] == "d")
                return [token_sets(self.config, o.length, 1, seed, o.batch)[0], few]
            except CaptureError:
                return [few]
        if name == "bbox":
            corner = torch.arange(o.length).reshape(1, -1, 1).expand(o.batch, -1, 4) * 7
            return [corner + torch.tensor([0, 0, 40, 30])]
        if name.endswith("grid_thw"):
            return [torch.tensor([[1, GRID, GRID]])]
        return self.prompts().get(name, [])

    def prompts(self):
        """What is pointed at in an image: two places, of the thing itself and of something else, a
        box, and a mask, which has four numbers for each patch along both sides."""
        import torch

        side = number(self.config, 64, "image_size") // number(self.config, 16, "patch_size")
        place = torch.tensor([[8.0, 12.0], [24.0, 20.0]])
        each = {
            "input_points": place[None, None],
            "input_labels": torch.tensor([[[1, 0]]]),
            "input_boxes": place.reshape(1, 1, 4),
            "input_masks": torch.arange(16 * side**2).reshape(1, 1, 4 * side, 4 * side) % 7 - 3.0,
        }
        return {n: [t.expand(self.batch, *t.shape[1:]).clone()] for n, t in each.items()}

    def placeholders(self):
        """Tokens that stand for parts of an image or of sound."""
        from .widths import inside

        out = []
        for c in inside(self.config):
            out += [
                v
                for n, v in vars(c).items()
                if re.match("(image|video|audio)_token_(id|index)$", n) and isinstance(v, int)
            ]
        return list(dict.fromkeys(out))

    def with_placeholders(self, tokens, token, count):
        import torch

        return torch.cat([tokens, torch.full((tokens.shape[0], count), token)], 1)

    def tensors(self, name, given=()):
        """Values to try for an input beside those given; none: nothing is known of it."""
        import torch

        known = self.known(name)
        if known:
            return known
        rows = [t.shape[:2] for t in dict(given).values() if t.dim() == 3]
        if rows and self.on_grid(name):
            return [self.drawn(name, (*rows[0], 2))]
        said = self.said.get(name)
        kind = said.kind if said else "float"
        shapes = [*self.shapes(name), *self.documented(name)]
        if name.startswith("past_"):  # of a series, whose docstrings are exact
            shapes = [*self.documented(name), *self.shapes(name)]
        if kind != "float" or "mask" in name:
            shapes += self.beside(dict(given)) or [(self.batch, self.length(name))]
        elif re.search("(embeds?|embeddings|states|features)$", name):
            wide = number(self.config, 64, "hidden_size", "d_model", "embed_dim")
            shapes.append((self.batch, self.length(name), wide))
            if re.search("^(image|dense)_", name):
                shapes.append((self.batch, wide, GRID, GRID))
            if name.startswith("sparse_"):  # of a group of places
                shapes.append((self.batch, 1, 2, wide))
        if said is not None and said.several and kind == "float" and not self.shapes(name):
            # A tensor stands for a list of those it has along its first dimension: here one of
            # each level, a map of features, or rows of them.
            wide = number(self.config, 64, "hidden_size", "d_model", "embed_dim")
            one = (self.batch, wide, GRID, GRID), (self.batch, self.length(name), wide)
            shapes = [(1, *s) for s in one] + shapes
        if not shapes and said is not None and said.tensor:  # nothing says of which shape
            wide = number(self.config, 64, "hidden_size", "d_model", "embed_dim")
            shapes = [(self.batch, self.length(name), wide), (self.batch, self.length(name))]
        return [self.drawn(name, s) for s in list(dict.fromkeys(shapes))[:MOST_SHAPES]]

    def drawn(self, name, shape):
        """An input's values, of its kind."""
        import torch

        kind = self.said[name].kind if name in self.said else "float"
        dtype = getattr(torch, self.options.dtype)
        if kind == "bool":
            return torch.arange(math.prod(shape)).reshape(shape) % 3 != 1
        if kind == "int":
            return self.integers(name, shape)
        if "mask" in name and name not in MADE:
            return torch.ones(shape, dtype=dtype)
        generator = torch.Generator().manual_seed(self.options.seed + 1 + len(name))
        out = torch.randn(shape, generator=generator)
        if (
            name == "flattened_patches" and shape[-1] > 2
        ):  # each begins with its row and its column, from one
            at = torch.arange(shape[1])
            out[:, :, 0], out[:, :, 1] = at // GRID + 1, at % GRID + 1
        return out.to(dtype)


MADE = ("prompt_masks",)  # images, whatever the name says
MOST_SHAPES = 10  # that are tried for one set of inputs
