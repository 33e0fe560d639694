"""Calls of a generation, composed: a prompt and tokens behind it against the whole text, and what
goes wrong with caches."""

import importlib.util
import json
import os
import shutil
import subprocess
import unittest

for needed in ("torch", "transformers"):
    if importlib.util.find_spec(needed) is None:
        raise unittest.SkipTest(needed + " is not installed")

import torch  # noqa: E402
from test_models import Case, run  # noqa: E402

import isomer  # noqa: E402
from isomer_capture import capture  # noqa: E402

VERDICT = {0: "equivalent", 1: "different", 2: "error", 3: "undecided"}
SMALL = ["--reduce", "--layers", "2", "--length", "7"]


class Cached(torch.nn.Module):
    """One head of attention; its keys and values are outputs, and inputs of the next call. With a
    table they lie in blocks of two tokens, as the table says."""

    def __init__(self, window=None, table=None):
        super().__init__()
        self.tokens, self.places = torch.nn.Embedding(16, 8), torch.nn.Embedding(32, 8)
        self.q, self.k, self.v = (torch.nn.Linear(8, 8, bias=False) for _ in range(3))
        self.window, self.table, self.done = window, table, 0

    def behind(self, old, new):
        """(the cache with the new rows, all rows that are there)"""
        if self.table is None:
            out = new if old is None else torch.cat([old, new], 1)
            return out, out
        end = self.done + new.shape[1]
        slots = [self.table[i // 2] * 2 + i % 2 for i in range(end)]
        pages = torch.zeros(1, 8, 8) if old is None else old
        pages = pages.index_copy(1, torch.tensor(slots[self.done :]), new)
        blocks = pages.view(1, 4, 2, 8)[:, torch.tensor(self.table)]
        return pages, blocks.flatten(1, 2)[:, :end]

    def forward(self, ids, keys=None, values=None):
        n = ids.shape[1]
        x = self.tokens(ids) + self.places(torch.arange(self.done, self.done + n))
        keys, k = self.behind(keys, self.k(x))
        values, v = self.behind(values, self.v(x))
        seen = torch.ones(n, k.shape[1], dtype=torch.bool).tril(self.done)
        if self.window:
            seen &= torch.ones(n, k.shape[1], dtype=torch.bool).triu(self.done + 1 - self.window)
        scores = (self.q(x) @ k.transpose(1, 2)).masked_fill(~seen, float("-inf"))
        return {"y": (scores * 8**-0.5).softmax(-1) @ v, "keys": keys, "values": values}


class Rotated(torch.nn.Module):
    """Two heads of attention over rotated keys. The whole has a batch and counts places itself;
    calls have none, are given their places, and keep keys and values in blocks of two tokens."""

    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(16, 8)
        self.q, self.k, self.v = (torch.nn.Linear(8, 8, bias=False) for _ in range(3))
        self.table, self.done = [3, 0, 1], 0

    def rotated(self, x, angles):
        low, high = x.chunk(2, -1)
        return x * angles.cos() + torch.cat([-high, low], -1) * angles.sin()

    def angles(self, places):
        a = places[:, None].float() * torch.tensor([1.0, 0.1])
        return torch.cat([a, a], -1)

    def whole(self, ids):
        n = ids.shape[1]
        x = self.tokens(ids)
        q, k, v = (f(x).view(1, n, 2, 4).transpose(1, 2) for f in (self.q, self.k, self.v))
        angles = self.angles(torch.arange(n))
        q, k = self.rotated(q, angles), self.rotated(k, angles)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return {"y": y.transpose(1, 2).reshape(1, n, 8)}

    def behind(self, old, new):
        end = self.done + new.shape[0]
        slots = [self.table[i // 2] * 2 + i % 2 for i in range(end)]
        pages = old.flatten(0, 1).index_copy(0, torch.tensor(slots[self.done :]), new)
        pages = pages.view(4, 2, 2, 4)
        return pages, pages[torch.tensor(self.table)].flatten(0, 1)[:end].transpose(0, 1)

    def forward(self, ids, places=None, keys=None, values=None):
        if places is None:
            return self.whole(ids)
        n = ids.shape[0]
        x = self.tokens(ids)
        q, k, v = (f(x).view(n, 2, 4) for f in (self.q, self.k, self.v))
        angles = self.angles(places)[:, None]
        q, k = self.rotated(q, angles).transpose(0, 1), self.rotated(k, angles)
        empty = torch.zeros(4, 2, 2, 4)
        keys, k = self.behind(empty if keys is None else keys, k)
        values, v = self.behind(empty if values is None else values, v)
        seen = torch.ones(n, k.shape[1], dtype=torch.bool).tril(self.done)
        scores = (q @ k.transpose(1, 2) * 0.5).masked_fill(~seen, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(0, 1).reshape(n, 8)
        return {"y": y, "keys": keys, "values": values}


class Calls(Case):
    def program(self, *words):
        p = subprocess.run([isomer.find_program(), *words], capture_output=True, text=True)
        return VERDICT[p.returncode], p

    def then(self, left, right, *later, options=()):
        """later: (left, right) of each further call; None: that side has none."""
        words = ["compare", self.path(left), self.path(right), *options]
        for pair in later:
            words += ["--then", *(self.path(x) if x else "-" for x in pair)]
        return self.program(*words)

    def edited(self, name, out, change):
        """A copy of a capture with its graph changed by change(graph)."""
        shutil.copytree(self.path(name), self.path(out))
        path = os.path.join(self.path(out), "graph.json")
        with open(path) as f:
            graph = json.load(f)
        change(graph)
        with open(path, "w") as f:
            json.dump(graph, f)


class Places(Calls):
    """A whole that counts places itself against calls that are given theirs."""

    def setUp(self):
        super().setUp()
        torch.manual_seed(0)
        self.model = Rotated().eval()
        self.ids = torch.randint(0, 16, (6,))
        capture(self.model, {"ids": self.ids[None]}, self.path("whole"))
        with torch.no_grad():
            before = self.model(self.ids[:5], torch.arange(5))
        self.cache = {k: before[k] for k in ("keys", "values")}
        capture(self.model, {"ids": self.ids[:5], "places": torch.arange(5)}, self.path("prompt"))
        self.model.done = 5

    def step(self, name, place):
        given = {"ids": self.ids[5:], "places": torch.tensor([place]), **self.cache}
        capture(self.model, given, self.path(name))
        return self.then("whole", "prompt", (None, name))

    def test_places_go_on_from_call_to_call(self):
        verdict, p = self.step("step", 5)
        self.assertEqual(verdict, "equivalent", p.stdout)
        proof = self.path("c.json")
        verdict, p = self.then(
            "whole", "prompt", (None, "step"), options=["--certificate", proof, "-v"]
        )
        self.assertIn("places is read in parts by 2 calls: 0:5, 5:6 of dimension 0", p.stdout)
        self.assertIn("[certified]", p.stdout)
        words = ["check", proof, self.path("whole"), self.path("prompt"), "--then", "-"]
        self.assertEqual(self.program(*words, self.path("step"))[0], "equivalent")

    def test_a_place_or_a_slot_that_is_wrong(self):
        self.assertEqual(self.step("late", 6)[0], "different")
        self.model.table = [3, 1, 0]
        self.assertEqual(self.step("another", 5)[0], "different")


class Composed(Calls):
    def setUp(self):
        super().setUp()
        torch.manual_seed(0)
        self.model = Cached().eval()
        self.ids = torch.randint(0, 16, (1, 6))
        capture(self.model, {"ids": self.ids}, self.path("whole"), outputs=["y"])
        self.call("prompt", 0, 4)
        self.call("step", 4, 5)
        self.call("last", 5, 6)
        self.call("rest", 4, 6)

    def call(self, name, begin, end, model=None):
        model = model or self.model
        given = {"ids": self.ids[:, begin:end]}
        model.done = 0
        if begin:
            with torch.no_grad():
                before = model(self.ids[:, :begin])
            given.update(keys=before["keys"], values=before["values"])
            model.done = begin
        capture(model, given, self.path(name))
        model.done = 0

    def test_calls_are_the_whole(self):
        for later in [["rest"], ["step", "last"]]:
            verdict, p = self.then("whole", "prompt", *((None, x) for x in later))
            self.assertEqual(verdict, "equivalent", p.stdout)
            verdict, p = self.program(
                "compare",
                self.path("prompt"),
                self.path("whole"),
                *(w for x in later for w in ("--then", self.path(x), "-")),
            )
            self.assertEqual(verdict, "equivalent", p.stdout)

    def test_calls_of_both_sides(self):
        verdict, p = self.then("prompt", "prompt", ("rest", "rest"))
        self.assertEqual(verdict, "equivalent", p.stdout)
        verdict, p = self.then("prompt", "prompt", ("step", "rest"))
        self.assertEqual(verdict, "different", p.stdout)  # of other sizes
        verdict, p = self.then("prompt", "prompt", ("step", "step"), ("last", None))
        self.assertEqual(verdict, "error", p.stdout)

    def test_a_report_and_a_certificate_name_the_calls(self):
        report, proof = self.path("r.json"), self.path("c.json")
        asked = ("--json", report, "--certificate", proof, "--html", self.path("p.html"))
        verdict, p = self.then("whole", "prompt", (None, "rest"), options=asked)
        self.assertEqual(verdict, "equivalent", p.stdout)
        with open(report) as f:
            r = json.load(f)
        self.assertEqual(r["left"]["then"], [])
        self.assertEqual(r["right"]["then"], [self.path("rest")])
        said = [a["text"] for a in r["assumptions"]]
        self.assertIn(
            "on the right input ids is read in parts by 2 calls: 0:4, 4:6 of dimension 1", said
        )
        self.assertTrue(any("keys, which the last call leaves behind" in t for t in said), said)
        words = ["check", proof, self.path("whole"), self.path("prompt")]
        self.assertEqual(self.program(*words, "--then", "-", self.path("rest"))[0], "equivalent")
        self.assertEqual(self.program(*words, "--then", "-", self.path("step"))[0], "error")
        self.assertEqual(self.program(*words)[0], "different")
        self.edited("rest", "touched", lambda g: g.update(model="another"))
        self.assertEqual(self.program(*words, "--then", "-", self.path("touched"))[0], "different")

    def test_state_that_is_not_the_last_one(self):
        def exchanged(graph):
            for n in graph["nodes"]:
                if n["op"] == "input" and n["name"] in ("keys", "values"):
                    n["name"] = {"keys": "values", "values": "keys"}[n["name"]]

        self.edited("rest", "exchanged", exchanged)
        self.assertEqual(self.then("whole", "prompt", (None, "exchanged"))[0], "different")
        late = Cached()
        late.load_state_dict(self.model.state_dict())
        late.places.weight = torch.nn.Parameter(self.model.places.weight.roll(1, 0))
        self.call("rolled", 4, 6, late.eval())
        verdict, p = self.then("whole", "prompt", (None, "rolled"))
        self.assertEqual(verdict, "error", p.stdout)
        self.assertIn("parameter places.weight is another one", p.stderr)

    def test_calls_that_do_not_follow_one_another(self):
        self.edited("prompt", "named", self.rename_outputs)
        capture(self.model, {"ids": self.ids[:, :5]}, self.path("five"), outputs=["y"])
        for whole, later, why in (
            ("five", "last", "input keys is float32 [1, 5, 8], and an output of"),
            ("whole", "last", "do not make up the [1, 6] of"),
            ("five", "rest", "do not make up the [1, 5] of"),
            ("whole", "rest", "no input of it has the name of an output of"),
            ("whole", "missing", "No such file"),
        ):
            first = "named" if why.startswith("no input") else "prompt"
            verdict, p = self.then(whole, first, (None, later))
            self.assertEqual((verdict, p.stderr.count("\n")), ("error", 1), p.stderr)
            self.assertIn(why, p.stderr)

    @staticmethod
    def rename_outputs(graph):
        for o in graph["outputs"]:
            o["name"] += "_new"

    def test_windows_and_pages(self):
        for right, wrong in (
            (Cached(window=3), Cached(window=2)),
            (Cached(window=3), Cached(window=4)),
            (Cached(table=(2, 0, 3)), Cached(table=(2, 1, 3))),  # a block of somebody else
            (Cached(table=(2, 0, 3)), Cached(table=(3, 0, 2))),  # two for each other
        ):
            for m in right, wrong:
                m.load_state_dict(self.model.state_dict())
            capture(right.eval(), {"ids": self.ids}, self.path("all"), outputs=["y"])
            self.call("first", 0, 4, right)
            self.call("next", 4, 6, right)
            self.call("wrong", 4, 6, wrong.eval())
            verdict, p = self.then("all", "first", (None, "next"))
            self.assertEqual(verdict, "equivalent", p.stdout)
            verdict, p = self.then("whole", "first", (None, "next"))
            self.assertEqual(verdict, "different" if right.window else "equivalent", p.stdout)
            verdict, p = self.then("all", "first", (None, "wrong"))
            self.assertEqual(verdict, "different", p.stdout)


def exchange_layers(graph):
    """Each layer reads the cache of the other."""
    for n in graph["nodes"]:
        if n["op"] == "input" and n["name"].startswith("cache."):
            parts = n["name"].split(".")
            n["name"] = ".".join({"0": "1", "1": "0"}.get(x, x) for x in parts)


def move(graph):
    """The token behind the prompt is one place earlier."""
    for n in graph["nodes"]:
        if n["op"] == "aten::add.Tensor" and n["args"][1:] == [6] and n["id"].startswith("add"):
            n["args"][1] = 5
            return


def turn(graph):
    """Keys in another order than values."""
    for n in graph["nodes"]:
        if n["op"] == "aten::cat" and n["args"][1:] in ([-2], [2]):
            n["args"][0].reverse()
            return


class Transformers(Calls):
    def test_models_with_their_caches(self):
        for model in "gpt2", "llama", "mistral":  # the last with a window of 4
            for k, options in enumerate(
                ([], ["--calls", "1"], ["--calls", "1", "--cache", "static"])
            ):
                name = "%s%d" % (model, k)
                status, _, err = run("hf", model, "-o", self.path(name), *SMALL, *options)
                self.assertEqual(status, 0, err)
                if not k:
                    continue
                one, two = name + "/1", name + "/2"
                verdict, p = self.then(model + "0", one, (None, two))
                self.assertEqual(verdict, "equivalent", p.stdout)
                if k > 1:
                    continue
                for fault in exchange_layers, move, turn:
                    out = "%s-%s" % (name, fault.__name__)
                    self.edited(two, out, fault)
                    verdict, p = self.then(model + "0", one, (None, out))
                    self.assertEqual(verdict, "different", (out, p.stdout))


class Growing(torch.nn.Module):
    """Attention with a cache whose length is that of its keys; what is wrong of it shows from some
    length on."""

    def __init__(self, places=lambda n: n, seen=lambda n: n):
        super().__init__()
        torch.manual_seed(0)
        self.table = torch.nn.Embedding(16, 8)
        self.q, self.k, self.v = (torch.nn.Linear(8, 8, bias=False) for _ in range(3))
        self.places, self.seen = places, seen

    def forward(self, ids, keys=None, values=None):
        done = 0 if keys is None else keys.shape[1]
        n = ids.shape[1]
        x = self.table(ids) + 0.1 * (torch.arange(n) + self.places(done))[:, None]
        k, v = self.k(x), self.v(x)
        if keys is not None:
            k, v = torch.cat([keys, k], 1), torch.cat([values, v], 1)
        at = torch.arange(n) + done
        hidden = torch.arange(done + n)[None, :] > torch.minimum(at, self.seen(at))[:, None]
        scores = (self.q(x) @ k.transpose(1, 2)).masked_fill(hidden, float("-inf"))
        return {"y": scores.softmax(-1) @ v, "keys": k, "values": v}


class OfAllLengths(Calls):
    """Symbols of the calls become those of one graph."""

    def setUp(self):
        super().setUp()
        self.ids = torch.randint(0, 16, (2, 9))
        self.call("whole", Growing(), 0, 9)
        self.call("prompt", Growing(), 0, 8)
        self.call("step", Growing(), 8, 9)

    def call(self, name, model, begin, end, names=("B", "T")):
        given, dynamic = {"ids": self.ids[:, begin:end]}, {"ids": {0: names[0], 1: names[1]}}
        if begin:
            with torch.no_grad():
                before = model(self.ids[:, :begin])
            given.update(keys=before["keys"], values=before["values"])
            dynamic = {n: {0: names[0], 1: names[1]} for n in ("keys", "values")}
            dynamic["ids"] = {0: names[0]}
        outputs = ["y"] if name == "whole" else None
        capture(model.eval(), given, self.path(name), dynamic=dynamic, outputs=outputs)

    def test_a_prompt_and_a_token(self):
        proof = self.path("c.json")
        for step, names in ("step", ("B", "T")), ("renamed", ("X", "Y")):
            self.call(step, Growing(), 8, 9, names)
            verdict, p = self.then(
                "whole", "prompt", (None, step), options=("--certificate", proof)
            )
            self.assertEqual(verdict, "equivalent", p.stdout)
            self.assertIn("for B >= 1, T >= 2]", p.stdout)
            words = (proof, *(self.path(x) for x in ("whole", "prompt")))
            p = self.program("check", *words, "--then", "-", self.path(step))[1]
            self.assertIn("for B >= 1, T >= 2]", p.stdout + p.stderr)

    def test_of_both_sides(self):
        verdict, p = self.then("prompt", "prompt", ("step", "step"))
        self.assertEqual(verdict, "equivalent", p.stdout)
        self.assertIn("for B >= 1, T >= 1]", p.stdout)

    def test_what_differs_beyond_a_length(self):
        """A token's place, and what it sees, each right up to a length."""
        for wrong, first in (
            (Growing(places=lambda n: min(n, 20)), 22),
            (Growing(places=lambda n: 8), 2),
            (Growing(seen=lambda at: torch.full_like(at, 30)), 32),
        ):
            self.call("wrong", wrong, 8, 9)
            verdict, p = self.then("whole", "prompt", (None, "wrong"))
            self.assertEqual(verdict, "different", p.stdout)
            self.assertIn("first at T = %d" % first, p.stdout)

    def test_sizes_that_do_not_follow(self):
        """Calls of which nothing says how long each is, and a call whose lengths are fixed, are
        those of the captured sizes."""
        self.ids = torch.cat([self.ids, self.ids[:, :1]], 1)
        self.call("whole", Growing(), 0, 10)
        model = Growing().eval()
        with torch.no_grad():
            before = model(self.ids[:, :8])
        given = {"ids": self.ids[:, 8:], "keys": before["keys"], "values": before["values"]}
        open_ones = {n: {0: "B", 1: "T"} for n in ("keys", "values")}
        for name, dynamic in (
            ("chunk", {**open_ones, "ids": {0: "B", 1: "C"}}),
            ("fixed", {"ids": {0: "B"}, "keys": {0: "B"}, "values": {0: "B"}}),
            ("closed", None),
        ):
            capture(model, given, self.path(name), dynamic=dynamic)
            verdict, p = self.then("whole", "prompt", (None, name))
            self.assertEqual(verdict, "equivalent", p.stdout)
            self.assertIn("EQUIVALENT [proved]", p.stdout)


class TransformersOfAllLengths(Calls):
    def captured(self, model):
        """The whole, a prompt, and the token behind it."""
        asked = ("--reduce", "--layers", "2", "--length", "9", "--dynamic", "length=1:64")
        for name, options in ("whole", []), ("calls", ["--calls", "1"]):
            status, _, err = run("hf", model, "-o", self.path(name), *asked, *options)
            self.assertEqual(status, 0, err)

    def proved(self, *options, least=3):
        at_captured = ("--disable", "sizes", *options)  # the scope is proved, not looked at
        verdict, p = self.then("whole", "calls/1", (None, "calls/2"), options=at_captured)
        self.assertEqual(verdict, "equivalent", p.stdout)
        self.assertIn("for %d <= T <= 64]" % least, p.stdout)

    def elsewhere(self, nodes, size):
        """The token's place, as the operators `nodes` have it, is `size`."""

        def change(graph):
            for n in graph["nodes"]:
                if n["id"] in nodes:
                    self.assertEqual(n["args"][1], {"size": "T"})
                    n["args"][1] = {"size": size}

        shutil.rmtree(self.path("wrong"), ignore_errors=True)
        self.edited("calls/2", "wrong", change)

    def right_at_the_captured_sizes_alone(self):
        options = ("--disable", "sizes")
        p = self.then("whole", "calls/1", (None, "wrong"), options=options)[1]
        self.assertIn("isomer: EQUIVALENT [proved]\n", p.stdout)

    def test_gpt2(self):
        self.captured("gpt2")
        self.proved()

    def test_llama(self):
        """Rotations and a mask."""
        self.captured("llama")
        proof = self.path("c.json")
        self.proved("--certificate", proof)
        words = (proof, self.path("whole"), self.path("calls/1"), "--then", "-")
        p = self.program("check", *words, self.path("calls/2"))[1]
        self.assertIn("HOLDS [proved, for 3 <= T <= 64]", p.stdout)
        self.elsewhere(["add"], "T - 1")
        verdict, p = self.then("whole", "calls/1", (None, "wrong"))
        self.assertEqual(verdict, "different", p.stdout)
        self.elsewhere(["add"], "min(T, 20)")
        self.assertNotEqual(self.program("check", *words, self.path("wrong"))[0], "equivalent")
        self.right_at_the_captured_sizes_alone()

    def test_mistral_without_a_window(self):
        """Heads that share keys, and a mask that is right up to a length."""
        from transformers import MistralConfig

        MistralConfig(sliding_window=None).save_pretrained(self.path("config"))
        self.captured(self.path("config"))
        self.proved()
        self.elsewhere(["add_2"], "min(T, 20)")
        self.right_at_the_captured_sizes_alone()

    def test_mistral_with_its_window(self):
        """What the cache keeps is the window, and how many tokens there were a number of its own:
        right behind a prompt that fills it."""
        self.captured("mistral")
        proof = self.path("c.json")
        self.proved("--certificate", proof, least=5)
        words = (proof, self.path("whole"), self.path("calls/1"), "--then", "-")
        p = self.program("check", *words, self.path("calls/2"))[1]
        self.assertIn("HOLDS [proved, for 5 <= T <= 64]", p.stdout)
        self.elsewhere(["add", "add_2"], "min(T, 20)")
        self.assertNotEqual(self.program("check", *words, self.path("wrong"))[0], "equivalent")
        self.right_at_the_captured_sizes_alone()
        p = self.then("whole", "calls/1", (None, "wrong"))[1]
        self.assertIn("first at T = 22", p.stdout)

        def smaller(graph):
            (n,) = (n for n in graph["nodes"] if n["op"] == "aten::sub.Tensor")
            self.assertEqual(n["args"][1], 4)
            n["args"][1] = 3

        self.edited("calls/2", "smaller", smaller)
        self.assertEqual(self.then("whole", "calls/1", (None, "smaller"))[0], "different")

    def test_numbers_of_a_cache(self):
        from types import SimpleNamespace as Cache

        from isomer_capture.errors import CaptureError
        from isomer_capture.generation import counted

        def cache(**numbers):
            return Cache(layers=[Cache(**numbers)])

        self.assertEqual(counted(cache(n=8, of=4), cache(n=7, of=4)), {"n"})
        for numbers in ({"n": 0.5}, {"n": True}, {"n": -1}):
            with self.assertRaisesRegex(CaptureError, "keeps n, which is .*, and no count"):
                counted(cache(**numbers), cache(n=0))


@unittest.skipUnless(importlib.util.find_spec("vllm"), "vLLM is not installed")
class VLLM(Calls):
    def test_models_with_pages(self):
        from safetensors.torch import load_file, save_file

        for model in "gpt2", "llama", "mistral":
            for name, options in ("whole", []), ("calls", ["--calls", "1"]):
                status, _, err = run("vllm", model, "-o", self.path(model + name), *SMALL, *options)
                self.assertEqual(status, 0, err)
            whole, one, two = (model + x for x in ("whole", "calls/1", "calls/2"))
            verdict, p = self.then(whole, one, (None, two))
            self.assertEqual(verdict, "equivalent", p.stdout)
            status, _, err = run("hf", model, "-o", self.path(model + "hf"), *SMALL)
            self.assertEqual(status, 0, err)
            verdict, p = self.then(model + "hf", one, (None, two))
            self.assertEqual(verdict, "equivalent", p.stdout)
            self.edited(two, model + "exchanged", exchange_layers)
            verdict, p = self.then(whole, one, (None, model + "exchanged"))
            self.assertEqual(verdict, "different", p.stdout)
            self.edited(two, model + "stale", lambda graph: None)
            path = os.path.join(self.path(model + "stale"), "weights.safetensors")
            tensors = load_file(path)
            for table in tensors.values():
                if table.dtype == torch.int64 and table.shape == (2,):
                    table[0] = (set(range(4)) - set(table.tolist())).pop()
            save_file(tensors, path)
            verdict, p = self.then(whole, one, (None, model + "stale"))
            self.assertEqual(verdict, "different", p.stdout)
