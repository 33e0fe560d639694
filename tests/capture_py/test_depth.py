"""Which layers stay where a model gets fewer of them: one of each kind first."""

import types
import unittest

from isomer_capture import depth


def config(**settings):
    return types.SimpleNamespace(**settings)


class Depth(unittest.TestCase):
    def keep(self, c, layers):
        return depth.keep(c, "num_hidden_layers", layers)

    def test_list_of_kinds(self):
        c = config(num_hidden_layers=8, layer_types=["window", "window", "window", "full"] * 2)
        self.assertEqual(self.keep(c, 2), "of 8 layers 0 (window), 3 (full) stay")
        self.assertEqual((c.num_hidden_layers, c.layer_types), (2, ["window", "full"]))

    def test_first_layers_are_not_spoken_of(self):
        c = config(num_hidden_layers=8, layer_types=["window", "full"] * 4)
        self.assertIsNone(self.keep(c, 2))
        self.assertEqual(c.layer_types, ["window", "full"])

    def test_more_kinds_than_layers(self):
        c = config(num_hidden_layers=4, layer_types=["scan", "experts", "full", "plain"])
        self.assertEqual(
            self.keep(c, 2),
            "of 4 layers 0 (scan), 1 (experts) stay; full, plain left out, which --layers 4 keeps",
        )

    def test_leading_layers(self):
        c = config(num_hidden_layers=61, first_k_dense_replace=3)
        self.assertEqual(self.keep(c, 2), "of 61 layers 0, 3 stay")
        self.assertEqual(c.first_k_dense_replace, 1)

    def test_numbers_of_layers(self):
        c = config(num_hidden_layers=40, cross_attention_layers=[3, 8, 13])
        self.assertEqual(self.keep(c, 2), "of 40 layers 0, 3 stay")
        self.assertEqual(c.cross_attention_layers, [1])

    def test_numbers_of_all_layers_are_no_kinds(self):
        c = config(num_hidden_layers=6, moe_layers=list(range(6)))
        self.assertIsNone(self.keep(c, 2))
        self.assertEqual(c.moe_layers, [0, 1])

    def test_every_so_many(self):
        c = config(num_hidden_layers=12, attn_layer_period=4, attn_layer_offset=2)
        self.assertEqual(self.keep(c, 2), "of 12 layers 0, 2 stay")
        self.assertEqual([i % c.attn_layer_period == c.attn_layer_offset for i in (0, 1)], [0, 1])
        c = config(num_hidden_layers=12, decoder_sparse_step=4)
        self.assertEqual(self.keep(c, 2), "of 12 layers 0, 3 stay")
        self.assertEqual(c.decoder_sparse_step, 2)

    def test_a_list_that_begins_again(self):
        c = config(num_hidden_layers=7, block_types=["scan", "scan", "attention"])
        self.assertEqual(self.keep(c, 2), "of 7 layers 0 (scan), 2 (attention) stay")
        self.assertEqual(c.block_types, ["scan", "attention"])

    def test_layers_that_lean_on_others(self):
        kinds = ["window", "full"] * 3
        c = config(num_hidden_layers=6, layer_types=list(kinds), num_kv_shared_layers=2)
        self.assertIn("left out, which --layers 3 keeps", self.keep(c, 2))
        self.assertEqual((c.layer_types, c.num_kv_shared_layers), (["window", "full"], 0))
        c = config(num_hidden_layers=6, layer_types=list(kinds), num_kv_shared_layers=2)
        self.assertEqual(self.keep(c, 3), "of 6 layers 0 (window), 1 (full), 4 (window) stay")
        self.assertEqual(c.num_kv_shared_layers, 1)

    def test_as_many_as_there_are(self):
        c = config(num_hidden_layers=2, layer_types=["window", "full"], ends=[0.5])
        self.assertIsNone(self.keep(c, 2))
        self.assertEqual((c.layer_types, c.ends), (["window", "full"], [0.5]))


if __name__ == "__main__":
    unittest.main()
