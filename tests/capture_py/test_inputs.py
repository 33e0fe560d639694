"""Example inputs that are found by running a model, and configurations made small so that it can be
built: on modules made here, whose needs are known."""

import importlib
import inspect
import os
import sys
import tempfile
import types
import unittest

import torch
from isomer_capture import classes, configs, documented, kinds, lacking, parts, search, widths
from isomer_capture.errors import CaptureError
from isomer_capture.hf import call_for
from torch import nn

OPTIONS = types.SimpleNamespace(batch=1, length=5, seed=0, dtype="float32")


class Config:
    model_type = "made-here"

    def __init__(self, **settings):
        self.__dict__.update(settings)

    def to_dict(self):
        return {k: v for k, v in vars(self).items() if not isinstance(v, Config)}


def call(model, **inputs):
    return model(**inputs)


def found(model, **settings):
    return search.found(model, Config(**settings), OPTIONS, call)


class NeedsMask(nn.Module):
    main_input_name = "input_values"

    def forward(self, input_values, attention_mask=None, labels=None):
        """
        Args:
            input_values (`torch.FloatTensor` of shape `(batch_size, sequence_length)`):
                Samples.
        """
        return input_values * inner(attention_mask)


def inner(attention_mask):
    return attention_mask.sum(-1)


class NeedsWidth(nn.Module):
    """Its width stands in no configuration."""

    main_input_name = "inputs_embeds"

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(24, 3)
        self.conv = nn.Conv1d(7, 2, 1)

    def forward(self, inputs_embeds, frames_features):
        return self.linear(inputs_embeds).sum() + self.conv(frames_features).sum()


class NeedsPlaceholders(nn.Module):
    main_input_name = "input_ids"

    def forward(self, input_ids, pixel_values=None):
        """
        Args:
            input_ids (`torch.LongTensor` of shape `(batch_size, sequence_length)`): Tokens.
            pixel_values (`torch.FloatTensor` of shape `(batch_size, 3, height, width)`): Images.
        """
        if pixel_values is None:
            raise ValueError("You have to specify pixel_values")
        tokens = int((input_ids == 9).sum())
        if tokens != 6:
            raise ValueError("tokens: %d, features: 6" % tokens)
        return input_ids + pixel_values.mean()


class Patches(nn.Module):
    main_input_name = "flattened_patches"

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(10, 3)
        self.rows = nn.Embedding(5, 3)

    def forward(self, flattened_patches):
        return self.linear(flattened_patches[:, :, 2:]) + self.rows(
            flattened_patches[:, :, 0].long()
        )


class NeedsBothWidths(nn.Module):
    """No shape that is tried for both at once fits both: the first has to be kept for the other."""

    main_input_name = "states"

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(17, 3), nn.Linear(4, 3)

    def forward(self, states: torch.Tensor = None, actions: torch.Tensor = None):
        """
        Args:
            states (`torch.FloatTensor` of shape `(batch_size, episode_length, state_dim)`): Places.
            actions (`torch.FloatTensor` of shape `(batch_size, episode_length, act_dim)`): Moves.
        """
        return self.second(actions) + self.first(states)


class Places(nn.Module):
    """An image as patches in a row, with the column and the row of each."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(12, 4)

    def forward(self, pixel_values: torch.LongTensor, pixel_position_ids: torch.LongTensor):
        columns, rows = pixel_position_ids.unbind(-1)
        batch, patches, _ = pixel_values.shape
        if (
            columns.shape != (batch, patches)
            or len(set(zip(*map(tuple, (columns[0], rows[0]))))) < 16
        ):
            raise ValueError("not one place for each patch")
        return self.linear(pixel_values) * (columns + 8 * rows).unsqueeze(-1)


class Channels(nn.Module):
    """Its image is as wide as no configuration says."""

    def __init__(self):
        super().__init__()
        self.conv = nn.ConvTranspose2d(700, 2, 1)

    def forward(self, hidden_states):
        return self.conv(hidden_states)


class Square(nn.Module):
    def forward(self, pixel_values):
        if pixel_values.shape[-2:] != (48, 48):
            at = tuple(pixel_values.shape[-2:])
            raise ValueError("Input image size (%d*%d) doesn't match model (48*48)." % at)
        return pixel_values.sum()


class Grid(nn.Module):
    """Patches of images, of which it is told the rows and the columns."""

    def __init__(self):
        super().__init__()
        self.proj = nn.Conv2d(3, 8, 16, 16)

    def forward(self, pixel_values, target_sizes: torch.IntTensor | None = None):
        r"""
        target_sizes (`torch.IntTensor` of shape `(batch_size, 2)`):
            Rows and columns.
        """
        x = self.proj(pixel_values).flatten(2)
        rows, columns = target_sizes.tolist()[0]
        return x + torch.arange(rows * columns).float().expand(1, 8, rows * columns)


class Clips(nn.Module):
    """Sound without a batch, and how long each of its parts is."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(80, 8, 3, padding=1)

    def forward(self, input_features, feature_lens: torch.LongTensor | None = None):
        r"""
        feature_lens (`torch.LongTensor` of shape `(batch_size,)`):
            Lengths.
        """
        parts = input_features.transpose(0, -1).split(feature_lens.tolist(), 0)
        return self.conv(nn.utils.rnn.pad_sequence(parts, batch_first=True).transpose(1, 2))


class Levels(nn.Module):
    """Maps of features of several levels."""

    def forward(self, vision_features: list[torch.Tensor], text_features: torch.Tensor):
        maps = [x.flatten(2).transpose(1, 2) for x in vision_features]
        return torch.cat(maps, 1).mean(1) + text_features.mean(1)


class Impossible(nn.Module):
    main_input_name = "input_values"

    def forward(self, input_values):
        raise ValueError("never with this")


class Inputs(unittest.TestCase):
    def test_a_mask_that_a_helper_reads(self):
        inputs = found(NeedsMask())
        self.assertEqual(set(inputs), {"input_values", "attention_mask"})
        self.assertTrue(bool((inputs["attention_mask"] == 1).all()))

    def test_a_width_that_only_the_error_says(self):
        inputs = found(NeedsWidth(), hidden_size=16)
        self.assertEqual(inputs["inputs_embeds"].shape[-1], 24)
        self.assertEqual(inputs["frames_features"].shape[1], 7)

    def test_an_input_that_fits_is_kept_for_the_next_one(self):
        inputs = found(NeedsBothWidths(), state_dim=17, act_dim=4, hidden_size=16)
        self.assertEqual([t.shape[-1] for t in inputs.values()], [17, 4])

        class Chain(NeedsBothWidths):
            def forward(self, states: torch.Tensor = None, actions: torch.Tensor = None):
                return self.first(states) + self.second(actions)

        # Neither width is said anywhere but in the errors.
        inputs = found(Chain(), hidden_size=16)
        self.assertEqual([t.shape[-1] for t in inputs.values()], [17, 4])

    def test_tuples_of_a_configuration_come_back(self):
        class Shaped(Config):
            def __init__(self, chunk=(2, 3), of_file=None):
                super().__init__(chunk=chunk, of_file=of_file)

        config = configs.default(Shaped)
        config.inner, config.of_file = configs.default(Shaped), [4]
        config.inner.chunk[0] = 1  # made smaller
        self.assertEqual(config.chunk, [2, 3])
        self.assertTrue(configs.with_tuples(config))
        self.assertEqual((config.chunk, config.inner.chunk), ((2, 3), (1, 3)))
        self.assertEqual(config.of_file, [4])
        self.assertFalse(configs.with_tuples(config))

    def test_codes_of_several_books_are_as_many_rows(self):
        class Books(nn.Module):
            main_input_name = "input_ids"

            def forward(self, input_ids):
                """
                Args:
                    input_ids (`torch.LongTensor` of shape `(batch_size * books, sequence_length)`):
                        Codes.
                """
                return input_ids.reshape(-1, 4, input_ids.shape[-1]).float()

        self.assertEqual(tuple(found(Books(), books=4, vocab_size=99)["input_ids"].shape), (4, 5))

    def test_what_is_pointed_at_in_an_image(self):
        class Prompts(nn.Module):
            main_input_name = "input_points"

            def forward(self, input_points, input_labels, input_boxes, input_masks):
                places = torch.cat([input_points, input_boxes.reshape(1, -1, 2, 2)], 2)
                chosen = places.sum(-1) * torch.cat([input_labels, input_labels], -1)
                return chosen.sum() + nn.functional.conv2d(input_masks, torch.ones(1, 1, 4, 4))

        inputs = found(Prompts(), image_size=64, patch_size=16)
        self.assertEqual(inputs["input_labels"].flatten().tolist(), [1, 0])
        self.assertLess(float(inputs["input_points"].max()), 64)
        self.assertEqual(tuple(inputs["input_masks"].shape), (1, 1, 16, 16))

    def test_switches_are_off_and_no_inputs(self):
        class Decoder(nn.Module):
            main_input_name = "image_embeddings"

            def forward(self, image_embeddings: torch.Tensor, several: bool, more: bool = True):
                batch, wide, rows, columns = image_embeddings.shape
                return image_embeddings.sum() * (wide if several else rows + columns)

        accepts = inspect.signature(Decoder.forward).parameters
        switches = {n for n, p in accepts.items() if search.is_switch(p)}
        self.assertEqual(switches, {"several"})
        self.assertEqual(search.first_set(Decoder(), None, accepts), ["image_embeddings"])
        of_transformers = call_for(Decoder())
        inputs = search.found(Decoder(), Config(hidden_size=16), OPTIONS, of_transformers)
        self.assertEqual(tuple(inputs["image_embeddings"].shape), (1, 16, 4, 4))
        out = of_transformers(Decoder(), **inputs)["output"]
        torch.testing.assert_close(out, inputs["image_embeddings"].sum() * 8)

    def test_tokens_that_stand_for_parts_of_an_image(self):
        inputs = found(NeedsPlaceholders(), image_token_id=9, vocab_size=9)
        self.assertEqual(int((inputs["input_ids"] == 9).sum()), 6)

    def test_patches_with_their_places(self):
        inputs = found(Patches(), patch_size=2)
        self.assertEqual(inputs["flattened_patches"].shape[-1], 12)
        self.assertEqual(inputs["flattened_patches"][0, :3, 1].tolist(), [1, 2, 3])

    def test_rows_and_columns_of_patches(self):
        inputs = found(Grid(), image_size=64, patch_size=16)
        self.assertEqual(inputs["target_sizes"].prod(), inputs["pixel_values"].shape[-1] ** 2 / 256)

    def test_sound_without_a_batch_and_the_lengths_of_its_parts(self):
        inputs = found(Clips(), num_mel_bins=80)
        self.assertEqual(inputs["input_features"].dim(), 2)
        self.assertEqual(inputs["feature_lens"].sum(), inputs["input_features"].shape[1])

    def test_maps_of_several_levels_are_one_tensor(self):
        inputs = found(Levels(), hidden_size=16)
        self.assertEqual(inputs["vision_features"].shape[:3], (1, 1, 16))
        self.assertEqual(inputs["text_features"].dim(), 3)

    def test_counts_are_only_made_to_fit_where_an_error_speaks_of_them(self):
        one = {"x": torch.zeros(2, 3), "target_sizes": torch.tensor([[4, 4]])}
        self.assertEqual(list(search.recounted(one, "a thing", [])), [])
        self.assertEqual(list(search.recounted(one, "size 5 and 7", [5, 7])), [])
        none = {"target_sizes": torch.zeros(2, 0, dtype=torch.int64)}
        self.assertEqual(list(search.recounted(none, "sum exactly to 5", [5])), [])
        self.assertEqual(list(search.unbatched(one, "Expected 2D input, but got 16")), [])
        fit = list(search.recounted(one, "a (12) must match b (16)", [12, 16]))
        self.assertEqual([f["target_sizes"].tolist() for f in fit], [[[3, 4]]])

    def test_what_never_runs_is_said_once(self):
        with self.assertRaisesRegex(CaptureError, "does not run: never with this"):
            found(Impossible())

    def test_rows_that_a_table_has(self):
        class Labels(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = nn.Embedding(2, 4)
                self.tokens = nn.Embedding(8, 4)

            def forward(self, input_ids, box_labels: torch.Tensor):
                return self.tokens(input_ids) + self.table(box_labels)

        inputs = found(Labels(), vocab_size=160)
        self.assertLess(int(inputs["input_ids"].max()), 8)
        self.assertEqual(inputs["box_labels"].dtype, torch.int64)

    def test_a_tensor_of_which_no_shape_is_said(self):
        class Anything(nn.Module):
            def forward(self, things: torch.Tensor):
                return things @ torch.ones(6, 2)

        self.assertEqual(found(Anything(), d_model=6)["things"].shape, (1, 5, 6))

    def test_an_input_of_which_nothing_is_known(self):
        class Unknown(nn.Module):
            def forward(self, session):
                return session

        with self.assertRaisesRegex(CaptureError, "no example is known for the input session"):
            found(Unknown())

    def test_patches_in_a_row_and_their_places(self):
        one = found(Places(), num_channels=3, patch_size=2)
        self.assertEqual(one["pixel_values"].shape, (1, 16, 12))
        self.assertEqual(one["pixel_position_ids"].shape, (1, 16, 2))
        self.assertTrue(one["pixel_values"].is_floating_point())  # whatever the annotation says

    def test_channels_that_a_convolution_says(self):
        self.assertEqual(found(Channels())["hidden_states"].shape[1], 700)

    def test_an_image_of_another_size_is_square(self):
        self.assertEqual(found(Square(), image_size=64)["pixel_values"].shape, (1, 3, 48, 48))


CONFIGURATION = """
class PartConfig:
    model_type = "part"

class HeadConfig(PartConfig): pass
class CodecConfig(PartConfig): pass
class LonelyConfig(PartConfig): pass

class BareConfig(PartConfig):
    vocab_size = 8

class WholeConfig:
    model_type = "whole"
    sub_configs = {"part": PartConfig, "head": HeadConfig, "text": BareConfig}

    def __init__(self):
        self.part, self.head, self.text = PartConfig(), HeadConfig(), BareConfig()
"""
MODELING = """
from torch import nn
from transformers import PreTrainedModel
from .configuration_made_here import CodecConfig, HeadConfig, PartConfig, WholeConfig, BareConfig

class Layer(nn.Module):
    def __init__(self, config: PartConfig | WholeConfig, layer: int):
        super().__init__()

    def forward(self, x):
        return x

class Embedder(nn.Module):
    def __init__(self, part: PartConfig, text: BareConfig):
        super().__init__()
        self.given = part, text

    def forward(self, x):
        return x

class Neck(nn.Module):
    def __init__(self, config: WholeConfig):
        super().__init__()

    def forward(self, x):
        return x

class Head(nn.Module):
    def __init__(self, config: WholeConfig):
        super().__init__()
        self.given = config.head

    def forward(self, x):
        return x

class Codec(nn.Module):
    def __init__(self, config: CodecConfig):
        super().__init__()

    def encode(self, x):
        return x + 1

class Picky(PreTrainedModel):
    def __init__(self, config):
        nn.Module.__init__(self)
        config.one + config.another

    def forward(self, x):
        return x

class Untold(PreTrainedModel):
    def __init__(self, config):
        nn.Module.__init__(self)
        self.table = nn.Embedding(config.vocab_size, 2)
        self.dropout = nn.Dropout(config.dropout_rate)

    def forward(self, x):
        return x
"""


class Classes(unittest.TestCase):
    """What a configuration makes that no table of Transformers has."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        package = os.path.join(cls.folder.name, "isomer_made_here")
        os.mkdir(package)
        for name, text in (("configuration", CONFIGURATION), ("modeling", MODELING)):
            with open(os.path.join(package, name + "_made_here.py"), "w", encoding="utf-8") as f:
                f.write(text)
        open(os.path.join(package, "__init__.py"), "w").close()
        sys.path.insert(0, cls.folder.name)
        cls.made = importlib.import_module("isomer_made_here.configuration_made_here")

    @classmethod
    def tearDownClass(cls):
        sys.path.remove(cls.folder.name)
        for name in [n for n in sys.modules if n.startswith("isomer_made_here")]:
            del sys.modules[name]
        cls.folder.cleanup()

    def test_a_part_that_is_made_of_several_configurations(self):
        config = self.made.PartConfig()
        part = classes.other_class(config)
        self.assertEqual(part.__name__, "Embedder")
        own, text = part(config).given
        self.assertIs(own, config)
        self.assertIsInstance(text, self.made.BareConfig)

    def test_a_part_that_reads_its_configuration_in_the_whole(self):
        config = self.made.HeadConfig()
        part = classes.other_class(config)
        self.assertEqual(part.__name__, "Head")
        self.assertIs(part(config).given, config)

    def test_a_codec_is_called_as_it_encodes(self):
        config = self.made.CodecConfig()
        cls = classes.called(classes.other_class(config))
        self.assertEqual(cls.__name__, "Codec")
        self.assertEqual(cls(config)(1), 2)

    def test_a_model_that_does_not_say_what_it_is_made_of(self):
        self.assertEqual(classes.other_class(self.made.BareConfig()).__name__, "Untold")

    def test_none(self):
        self.assertIsNone(classes.other_class(self.made.LonelyConfig()))


class Docstrings(unittest.TestCase):
    def test_types_and_shapes(self):
        said = documented.of_class(NeedsPlaceholders)
        self.assertEqual(said["input_ids"].kind, "int")
        self.assertEqual(said["pixel_values"].kind, "float")
        self.assertEqual(said["pixel_values"].dimensions, ["batch_size", "3", "height", "width"])

    def test_shapes_in_brackets(self):
        class Decoder(nn.Module):
            def forward(self, features: torch.Tensor, box_labels, others: list[torch.Tensor]):
                """
                Args:
                    features: of the image [batch_size, height*width, hidden_size]
                    box_labels: one for each [batch_size, num_boxes]
                """

        said = documented.of_class(Decoder)
        self.assertEqual(said["features"].dimensions, ["batch_size", "height*width", "hidden_size"])
        self.assertEqual(said["box_labels"].dimensions, ["batch_size", "num_boxes"])
        self.assertEqual([said[n].tensor for n in ("features", "others")], [True, False])
        sizes = {"batch": 1, "side": 64, "grid": 4, "length": 9, "wide": 8, "other": 1}
        at = documented.shape(said["features"].dimensions, "features", Config(), sizes)
        self.assertEqual(at, (1, 16, 8))

    def test_sizes_of_words(self):
        config = Config(num_time_features=2, depth=6, inside=Config(width_of_it=11))
        known = {"batch": 3, "length": 5, "side": 32, "wide": 64, "other": 1}
        for words, size in (
            ("batch_size", 3),
            ("sequence_length", 5),
            ("height", 32),
            ("hidden_size", 64),
            ("config.inside.width_of_it", 11),
            ("width_of_it", 11),
            ("depth", 6),
            ("num_features", 2),
            ("depth * batch_size", 18),
            ("17", 17),
            ("something", 1),
        ):
            with self.subTest(words):
                self.assertEqual(
                    documented.size_of(words, "past_time_features", config, known), size
                )


class Lacking(unittest.TestCase):
    def raised(self, function, *given):
        try:
            function(*given)
        except Exception as e:
            return e
        raise AssertionError("nothing was raised")

    def test_settings_that_are_none(self):
        def build(config):
            return config.heads + 1

        def before(config):
            heads = config.heads
            return heads + 1

        config = Config(heads=None, other=None)
        for function in (build, before):
            self.assertEqual(lacking.settings(self.raised(function, config)), [(config, "heads")])

    def test_settings_that_are_not_there(self):
        def build(config):
            return config.num_key_value_heads + 1

        config = Config(num_attention_heads=4)
        found = lacking.settings(self.raised(build, config))
        self.assertEqual(found, [(config, "num_key_value_heads")])
        self.assertEqual(widths.likely(config, *found[0])[0], 4)

    def test_settings_that_a_module_holds(self):
        class Experts(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.top_k = config.inner.experts_per_token

            def forward(self, x):
                return torch.topk(x, k=self.top_k)

        class Whole(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.config, self.experts = config, Experts(config)

            def forward(self, x):
                return self.experts(x)

        config = Config(inner=Config(experts_per_token=None, other=None))
        error = self.raised(Whole(config), torch.ones(4))
        self.assertEqual(lacking.held(error), [(config.inner, "experts_per_token")])

    def test_a_setting_read_where_it_fails(self):
        class Router(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.config = config

            def forward(self, x):
                return torch.topk(x, k=self.config.top_k)

        config = Config(top_k=None, other=None)
        error = self.raised(Router(config), torch.ones(4))
        self.assertEqual(lacking.held(error), [(config, "top_k")])

    def test_parts_of_a_rotation_that_a_module_was_made_with(self):
        class Rotary(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.config = config
                self.section = config.rope_parameters.get("mrope_section", [8, 12, 12])

            def forward(self, x):
                return x.split(self.section, -1)

        config = Config(rope_parameters={"type": "default"}, hidden_size=64, num_attention_heads=4)
        entry = lacking.entry(self.raised(Rotary(config), torch.ones(1, 8)))
        self.assertEqual(entry[:3], (config, "rope_parameters", "mrope_section"))
        self.assertEqual(widths.entry(*entry), [2, 3, 3])

    def test_an_entry_that_is_not_there(self):
        def rotate(config):
            return config.rope_parameters["mrope_section"]

        config = Config(rope_parameters={"type": "default"}, hidden_size=64, num_attention_heads=4)
        entry = lacking.entry(self.raised(rotate, config))
        self.assertEqual(entry, (config, "rope_parameters", "mrope_section"))
        self.assertEqual(sum(widths.entry(*entry)), 8)  # half a head
        self.assertIsNone(lacking.entry(ValueError("x")))

    def test_parts_of_a_rotation_that_have_a_default(self):
        def rotate(config):
            section = config.rope_parameters.get("mrope_section", [22, 22, 20])
            raise ValueError(section)

        config = Config(rope_parameters={"type": "default"}, hidden_size=64, num_attention_heads=2)
        entry = lacking.entry(self.raised(rotate, config))
        self.assertEqual(widths.entry(*entry), [5, 5, 6])
        config.rope_parameters["partial_rotary_factor"] = 0.5
        self.assertEqual(sum(widths.entry(*entry)), 8)  # half a head, of which half is rotated


class Widths(unittest.TestCase):
    def test_layers_of_a_hybrid_that_scan(self):
        config = Config(hidden_size=4096, num_attention_heads=32, mamba_n_heads=128)
        config.__dict__.update(mamba_d_head=64, mamba_d_state=256, mamba_chunk_size=256)
        configs.reduce(config)
        inner = config.mamba_n_heads * config.mamba_d_head
        self.assertEqual(inner, 2 * config.hidden_size)
        self.assertLess(config.mamba_chunk_size, 9)  # tokens
        self.assertEqual(config.mamba_d_state, 16)

    def test_what_a_backbone_gives(self):
        config = Config(num_hidden_layers=12, stage_names=["stem"] + ["s%d" % k for k in range(12)])
        config._out_features, config._out_indices = ["s11"], [12]
        widths.shallow(config, 2)
        self.assertEqual((config._out_features, config._out_indices), (["s1"], [2]))

    def test_a_patch_that_is_an_image(self):
        config = Config(patch_size=384, inner=Config(image_size=384, patch_size=16))
        small = widths.small_images(config)
        self.assertEqual((small.patch_size, small.inner.image_size), (64, 64))

    def test_groups_of_one_channel_and_places_that_are_picked(self):
        config = Config(hidden_size=512, upsample_groups=512, pos_groups=16, num_queries=300)
        small = widths.narrowed(config, 8)
        self.assertEqual((small.hidden_size, small.upsample_groups, small.pos_groups), (64, 64, 16))
        self.assertEqual(small.num_queries, 9)
        self.assertEqual(widths.narrowed(config, 1).num_queries, 300)  # the model as it is

    def test_heads_divide_the_width(self):
        config = widths.whole_heads(Config(hidden_size=144, num_attention_heads=14))
        self.assertEqual(config.num_attention_heads, 12)

    def test_images_and_all_that_is_as_wide_as_one(self):
        config = Config(
            image_size=1024, patch_size=16, window_size=14, inner=Config(image_embedding_size=64)
        )
        config.inner.image_size, config.inner.patch_size = 1024, 16
        small = widths.small_images(config)
        self.assertEqual((small.image_size, small.window_size), (64, 14))
        self.assertEqual((small.inner.image_size, small.inner.image_embedding_size), (64, 4))
        self.assertEqual(config.image_size, 1024)

    def test_no_configuration_is_tried_twice(self):
        tried = [c.to_dict() for c in widths.smaller(Config(hidden_size=64, depth=4), 2)]
        self.assertEqual([t["hidden_size"] for t in tried], [8, 16, 32, 64] * 2)
        self.assertEqual([t["depth"] for t in tried], [2] * 4 + [4] * 4)

    def test_a_backbone_has_a_layer_for_each_feature(self):
        config = Config(num_layers=12, hidden_size=64)
        config.stage_names = ["stem", *("stage%d" % (i + 1) for i in range(12))]
        config._out_indices = [3, 6, 9, 12]
        small = next(widths.smaller(config, 2))
        self.assertEqual((small.num_layers, small._out_indices), (4, [1, 2, 3, 4]))
        self.assertEqual(small._out_features, ["stage1", "stage2", "stage3", "stage4"])

    def test_features_of_all_stages(self):
        config = Config(inner=Config(stage_names=["stem", "a", "b", "c"], _out_indices=[3]))
        self.assertTrue(widths.all_features(config))
        self.assertEqual(config.inner._out_indices, [1, 2, 3])
        self.assertEqual(config.inner._out_features, ["a", "b", "c"])
        self.assertFalse(widths.all_features(config))
        self.assertFalse(widths.all_features(Config(hidden_size=16)))  # no backbone

    def test_heads_of_keys_of_some_layers(self):
        config = Config(num_attention_heads=2, hidden_size=32)
        self.assertEqual(widths.likely(config, config, "num_global_key_value_heads")[0], 2)

    def test_a_setting_of_which_each_layer_has_its_own(self):
        class Mixed(Config):
            @property
            def num_attention_heads(self):
                raise RuntimeError("'num_attention_heads' may vary across layers")

        config = Mixed(hidden_size=64)
        self.assertEqual(configs.get(config, "num_attention_heads"), (None, None))
        self.assertEqual(configs.get(config, "num_attention_heads", "hidden_size")[1], 64)
        self.assertEqual(kinds.number(config, 5, "num_attention_heads"), 5)
        self.assertIs(widths.whole_heads(config), config)

    def test_a_missing_dropout_is_none(self):
        self.assertEqual(widths.likely(Config(), Config(), "dropout_rate"), [0.0])

    def test_no_number_format_is_guessed(self):
        self.assertEqual(widths.likely(Config(), Config(), "torch_dtype"), [])

    def test_parts_that_only_a_configuration_says(self):
        class Asked(Config):
            sub_configs = property(lambda self: {"inner": Config})

        self.assertEqual((parts.said(Asked), parts.unsaid(Asked)), ({}, []))
        self.assertIn(4, widths.likely(Asked(), Asked(), "blocks"))


if __name__ == "__main__":
    unittest.main()
