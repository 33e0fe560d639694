"""Transformers' models captured from the command line, compared by the program; and vLLM's, where
it is installed."""

import contextlib
import importlib.util
import json
import math
import os
import subprocess
import tempfile
import unittest

for needed in ("torch", "transformers"):
    if importlib.util.find_spec(needed) is None:
        raise unittest.SkipTest(needed + " is not installed")

import isomer  # noqa: E402
from isomer_capture import cli  # noqa: E402

TINY = ["--reduce", "--layers", "1", "--length", "6"]


def run(*arguments):
    """(status, stdout, stderr) of isomer-capture."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = cli.main([str(a) for a in arguments])
            except SystemExit as e:
                status = e.code
        out.seek(0)
        err.seek(0)
        return status, out.read(), err.read()


def leaves(graph, kind):
    return [n for n in graph["nodes"] if n["op"] == kind]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def take(self, what, model, name, *options):
        status, out, err = run(what, model, "-o", self.path(name), *TINY, *options)
        self.assertEqual(status, 0, err)
        with open(os.path.join(self.path(name), "graph.json")) as f:
            return json.load(f)

    def compare(self, left, right):
        p = subprocess.run(
            [isomer.find_program(), "compare", self.path(left), self.path(right)],
            capture_output=True,
            text=True,
        )
        self.assertIn(p.returncode, (0, 1, 3), p.stderr)
        return {0: "equivalent", 1: "different", 3: "undecided"}[p.returncode]


class Transformers(Case):
    def test_attention_implementations_agree_and_a_constant_differs(self):
        sdpa = self.take("hf", "llama", "sdpa", "--set", "num_key_value_heads=2")
        ops = [n["op"] for n in sdpa["nodes"]]
        attention = next(
            n for n in sdpa["nodes"] if n["op"] == "aten::scaled_dot_product_attention"
        )
        self.assertEqual(attention["scope"], "model.layers.0.self_attn")
        self.assertNotIn("aten::where.self", ops)  # no mask: as it runs
        self.assertTrue(
            all(
                n.get("source", "transformers/").startswith(("transformers/", "isomer_capture/"))
                for n in sdpa["nodes"]
            ),
            {n.get("source") for n in sdpa["nodes"]},
        )
        self.take("hf", "llama", "mask", "--set", "num_key_value_heads=2", "--attn", "sdpa-mask")
        self.take(
            "hf",
            "llama",
            "eps",
            "--set",
            "num_key_value_heads=2",
            "--set",
            "rms_norm_eps=1e-3",
            "--attn",
            "eager",
        )
        self.assertEqual(self.compare("sdpa", "mask"), "equivalent")
        self.assertEqual(self.compare("sdpa", "eps"), "different")

    def test_a_prompt_with_its_cache_is_the_whole(self):
        """And is not where the token behind the prompt is at another position."""
        for model in ("gpt2", "llama"):
            whole = self.take("hf", model, "whole")
            cached = self.take("hf", model, "cached", "--cached", "1")
            self.assertEqual(whole["outputs"][0]["name"], cached["outputs"][0]["name"])
            self.assertEqual(self.compare("whole", "cached"), "equivalent")
            behind = [
                n
                for n in cached["nodes"]
                if n["op"] == "aten::add.Tensor" and n["args"][1:] == [5] and n["id"] != "add"
            ]
            self.assertEqual(len(behind), 1)
            behind[0]["args"][1] = 4
            with open(os.path.join(self.path("cached"), "graph.json"), "w") as f:
                json.dump(cached, f)
            self.assertEqual(self.compare("whole", "cached"), "different")

    def test_what_keeps_no_cache_cannot_be_captured_with_one(self):
        for model, why in (("vit", "keeps no cache"), ("bert", "keeps no cache")):
            status, _, err = run("hf", model, "-o", self.path(model), *TINY, "--cached", "1")
            self.assertEqual((status, err.count("\n")), (2, 1), err)
            self.assertIn(why, err)
        status, _, err = run("hf", "llama", "-o", self.path("x"), *TINY, "--cached", "6")
        self.assertEqual((status, err.count("\n")), (2, 1), err)
        self.assertIn("there are only 6 tokens", err)

    def test_models_that_read_images(self):
        graph = self.take("hf", "vit", "sdpa")
        inputs = [n for n in graph["nodes"] if n["op"] == "input"]
        self.assertEqual([n["name"] for n in inputs], ["pixel_values"])
        self.assertEqual(inputs[0]["outputs"][0]["shape"], [1, 3, 64, 64])
        self.take("hf", "vit", "eager", "--attn", "eager")
        self.assertEqual(self.compare("eager", "sdpa"), "equivalent")

    def test_an_output_of_another_name(self):
        graph = self.take("hf", "dpr", "dpr")
        self.assertEqual([o["name"] for o in graph["outputs"]], ["pooler_output"])

    def test_weights_are_of_the_seed_and_norms_are_drawn(self):
        self.take("hf", "gpt2", "a")
        self.take("hf", "gpt2", "b")
        self.take("hf", "gpt2", "eager", "--attn", "eager")
        self.take("hf", "gpt2", "c", "--seed", "7")
        weights = [
            open(os.path.join(self.path(n), "weights.safetensors"), "rb").read() for n in "abc"
        ]
        self.assertEqual(weights[0], weights[1])
        self.assertNotEqual(weights[0], weights[2])
        self.assertEqual(self.compare("a", "eager"), "equivalent")

    def test_from_a_folder(self):
        from transformers import GPT2Config

        GPT2Config(n_embd=32, n_head=2, n_layer=1, vocab_size=50, n_positions=16).save_pretrained(
            self.path("m")
        )
        status, out, err = run(
            "hf", self.path("m"), "-o", self.path("c"), "--length", "5", "--set", "n_layer=1"
        )
        self.assertEqual(status, 0, err)
        self.assertNotIn(self.folder, open(os.path.join(self.path("c"), "graph.json")).read())

    def test_inputs_by_kind(self):
        """Sound, series, an encoder with a decoder, boxes, a part of a model, maps of features;
        their widths have names of many kinds."""
        for model, inputs in (
            ("audio-spectrogram-transformer", {"input_values"}),
            ("wav2vec2", {"input_values"}),
            ("whisper", {"input_features", "decoder_input_ids"}),
            ("t5", {"input_ids", "decoder_input_ids"}),
            ("clip", {"input_ids", "pixel_values"}),
            ("bros", {"input_ids", "bbox"}),
            ("align_text_model", {"input_ids"}),
            ("resnet", {"pixel_values"}),
            ("autoformer", {"past_values", "past_time_features", "past_observed_mask"}),
            ("blip_2_qformer", {"query_embeds", "encoder_hidden_states"}),
            ("audioflamingo3_encoder", {"input_features", "input_features_mask"}),
            ("idefics_vision", {"pixel_values"}),
            ("vision-encoder-decoder", {"pixel_values", "decoder_input_ids"}),
        ):
            with self.subTest(model):
                whole = ["--head", "none"] if model == "whisper" else []
                graph = self.take("hf", model, model, "--attn", "eager", *whole)
                self.assertEqual({n["name"] for n in leaves(graph, "input")}, inputs)
                sizes = [math.prod(n["outputs"][0]["shape"]) for n in leaves(graph, "parameter")]
                self.assertLess(max(sizes), 1 << 22)

    def test_errors_are_one_line(self):
        for model, options, words in (
            ("no-such-model", [], "no-such-model"),
            ("llama", ["--set", "no_such_key=1"], "no_such_key"),
            ("llama", ["--set", 'hidden_act="nope"'], "nope"),
            ("llama", ["--set", "rope_parameters=3"], "'rope_parameters': TypeError: "),
            ("gptj", [], "give --attn eager"),
            (__file__, [], "is not JSON, as a model's config.json is"),
            ("llama", ["--checkpoint", "/proc/nothing"], "/proc/nothing: No such file"),
            ("layoutlmv2", ["--attn", "eager"], "detectron2"),
        ):
            status, out, err = run("hf", model, "-o", self.path("x"), *TINY, *options)
            self.assertEqual(status, 2, err)
            self.assertEqual(err.count("\n"), 1, err)
            self.assertIn(words, err)
            self.assertEqual(os.listdir(self.folder), [])

    def test_which_layers_stay_is_said(self):
        status, _, err = run("hf", "gemma2", "-o", self.path("x"), *TINY)
        self.assertEqual(status, 0, err)
        words = "0 (sliding_attention) stay; full_attention left out, which --layers 2 keeps"
        self.assertEqual(err, "isomer-capture: of 26 layers %s\n" % words)

    def test_sweep(self):
        with open(self.path("s.json"), "w") as f:
            json.dump(
                [
                    {
                        "models": ["gpt2"],
                        "layers": 1,
                        "length": 6,
                        "right": "hf",
                        "right_set": {"layer_norm_epsilon": 1e-3},
                    },
                    {
                        "models": ["gpt2"],
                        "layers": 1,
                        "length": 6,
                        "right": "hf",
                        "base": {"n_head": 5},
                    },
                ],
                f,
            )
        status, out, err = run("--sweep", self.path("s.json"), "-o", self.path("out"))
        self.assertEqual(status, 1, err)
        self.assertRegex(out, r"\| gpt2 \| default \| different \| .*ln_1")
        self.assertRegex(out, r"\| gpt2 \| default \| no capture \| hf: ")
        with open(os.path.join(self.path("out"), "sweep.json")) as f:
            self.assertEqual(len(json.load(f)["rows"]), 2)
        for text in (
            "nonsense",
            "{}",
            '{"models": ["gpt2"], "sett": {}}',
            "[3]",
            '{"models": ["gpt2"], "left": "jax"}',
        ):
            with open(self.path("s.json"), "w") as f:
                f.write(text)
            status, out, err = run("sweep", self.path("s.json"), "-o", self.path("out"))
            self.assertEqual((status, err.count("\n")), (2, 1), err)

    def test_sweep_of_the_model_on_the_command_line(self):
        with open(self.path("s.json"), "w") as f:
            json.dump(
                {
                    "right": "hf",
                    "right_set": {"activation_function": "gelu"},
                    "set": {"activation_function": ["relu"]},
                },
                f,
            )
        status, out, err = run(
            "hf",
            "gpt2",
            "--sweep=" + self.path("s.json"),
            "-o",
            self.path("out"),
            *TINY,
            "--seed",
            "3",
        )
        self.assertEqual(status, 1, err)
        self.assertRegex(out, r'\| gpt2 \| activation_function="relu" \| different \| ')
        with open(os.path.join(self.path("out"), "0-gpt2-1", "left", "graph.json")) as f:
            self.assertEqual(json.load(f)["metadata"]["seed"], 3)
        for more in (["--name", "x"], ["--trace"], ["--timeout", "0"]):
            status, out, err = run(
                "hf", "gpt2", "--sweep", self.path("s.json"), "-o", self.path("out"), *TINY, *more
            )
            self.assertEqual(status, 2, more)
        with open(self.path("s.json"), "w") as f:
            json.dump({"models": ["gpt2"]}, f)
        self.assertEqual(
            run("hf", "gpt2", "--sweep", self.path("s.json"), "-o", self.path("out"), *TINY)[0], 2
        )

    def test_usage(self):
        self.assertEqual(run("hf", "llama")[0], 2)
        self.assertEqual(run("hf", "llama", "-o", "x", "--set", "novalue")[0], 2)
        self.assertEqual(run("--help")[0], 0)


@unittest.skipUnless(importlib.util.find_spec("vllm"), "vLLM is not installed")
class VLLM(Case):
    def test_agrees_with_transformers(self):
        for model in ("gpt2", "llama"):
            self.take("hf", model, model + "-hf")
            graph = self.take("vllm", model, model + "-vllm")
            node = next(n for n in graph["nodes"] if n["op"].startswith("vllm::"))
            self.assertEqual(node["attributes"]["num_heads"], 4)
            self.assertEqual(self.compare(model + "-hf", model + "-vllm"), "equivalent")

    def test_window_reaches_the_attributes(self):
        graph = self.take("vllm", "mistral", "m")
        self.assertEqual(
            [n["attributes"]["sliding_window"] for n in graph["nodes"] if "attributes" in n], [4]
        )


if __name__ == "__main__":
    unittest.main()
