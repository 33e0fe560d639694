"""Sizes that stay open: what a capture of them says, and pairs that are compared at other sizes
than those captured. The truth is known by construction: honest refactorings are equal at every
size, twins differ from one size on."""

import contextlib
import io
import json
import os
import subprocess
import tempfile
import unittest

import commands
import torch
from isomer_capture import CaptureError, capture
from torch import nn

D = 8
TOKENS = 5
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ISOMER = os.environ.get("ISOMER", os.path.join(ROOT, "build", "isomer"))


class Case(nn.Module):
    """One function in several forms; `form` chooses, parameters are the same in all."""

    def __init__(self, form):
        super().__init__()
        torch.manual_seed(1)
        self.form = form
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))
        self.table = nn.Parameter(torch.randn(12, D))
        self.register_buffer("short", torch.rand(D))
        self.register_buffer("long", torch.rand(D))


class Window(Case):
    """Attention of a sliding window of six."""

    def forward(self, x):
        pos = torch.arange(x.shape[1])
        by = pos[:, None] - pos[None, :]
        window = {"twin": 7}.get(self.form, 6)
        q, k, v = self.q(x), self.k(x), self.v(x)
        if self.form == "honest":
            seen = torch.logical_not(torch.logical_or(by < 0, by > window - 1))
            scores = torch.einsum("btd,bsd->bts", q, k) / 2
            low = torch.full((), float("-inf"))
            return torch.where(seen, scores, low).softmax(-1) @ v
        seen = (by >= 0) & (by < window)
        scores = (q @ k.transpose(1, 2)) * 0.5
        return scores.masked_fill(~seen, float("-inf")).softmax(-1) @ v


class Causal(Case):
    """Causal attention: written out, and with a mask; the twin sees the whole of the first four."""

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        n = x.shape[1]
        if self.form == "honest":
            mask = torch.ones(n, n, dtype=torch.bool).tril()
            return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        pos = torch.arange(n)
        seen = pos[None, :] <= pos[:, None]
        if self.form == "twin":
            seen = seen | (pos[None, :] > 14)
        scores = (q @ k.transpose(1, 2)) / D**0.5
        return scores.masked_fill(~seen, float("-inf")).softmax(-1) @ v


class Switch(Case):
    """A table of frequencies that changes where there are more than sixteen positions."""

    def forward(self, x):
        pos = torch.arange(x.shape[1])
        if self.form == "honest":
            by = torch.where(pos.max() >= 16, self.long, self.short)
        else:
            by = torch.where(pos[-1] + (self.form != "twin") > 16, self.long, self.short)
        angle = pos[:, None] * by[None, :]
        return x * angle.cos() + x.flip(-1) * angle.sin()


class Clamped(Case):
    """Positions beyond a table's end read its last row."""

    def forward(self, x):
        pos = torch.arange(x.shape[1])
        if self.form == "honest":
            return x + self.table[torch.where(pos > 11, 11, pos)]
        return x + self.table[pos.clamp(max=10 if self.form == "twin" else 11)]


class Last(Case):
    """The last token of each sequence; the twin always takes the one that was last."""

    def forward(self, x):
        if self.form == "honest":
            return self.q(x).flip(1)[:, 0]
        return self.q(x[:, 4]) if self.form == "twin" else self.q(x[:, -1])


class Pooled(Case):
    """The mean over a sequence; the twin divides by the captured length."""

    def forward(self, x):
        if self.form == "honest":
            return x.sum(1) / x.shape[1]
        return x.sum(1) / 5 if self.form == "twin" else x.mean(1)


class Batch(Case):
    """Normalised over a sequence; the twin over the whole batch."""

    def forward(self, x):
        if self.form == "honest":
            return x.exp() / x.exp().sum(1, keepdim=True)
        if self.form == "twin":
            return x.exp() / x.exp().sum((0, 1), keepdim=True)
        return x.softmax(1)


class Blocks(Case):
    """Sums of blocks of four, the last one padded; the twin has no room for a fourth block."""

    def forward(self, x):
        rest = (-x.shape[1]) % 4
        whole = nn.functional.pad(x, (0, 0, 0, rest))
        n = whole.shape[1] // 4
        blocks = whole.reshape(x.shape[0], n, 4, D)
        out = blocks.cumsum(2) if self.form == "honest" else whole.view(-1, n, 4, D).cumsum(2)
        if self.form == "twin":
            keep = torch.arange(n)[None, :, None, None] < 3
            out = out * keep
        return out.reshape(x.shape[0], n * 4, D)[:, : x.shape[1]]


class Written(Case):
    """The second half is written over; the twin writes to the third element, too."""

    def forward(self, x):
        y = x.clone()
        half = x.shape[1] // 2
        if self.form == "honest":
            return torch.cat([y[:, :half], y[:, half:] * 2], 1)
        y[:, half:] *= 2
        if self.form == "twin":
            y[:, 7:] += 1
        return y


class Rolled(Case):
    """The twin rolls by twenty, which is nothing at 1, 2, 4, 5, 10 and 20 tokens alone."""

    def forward(self, x):
        if self.form == "honest":
            return self.q(x).flip(1).flip(1)
        return self.q(x).roll(20, 1) if self.form == "twin" else self.q(x)


# The size that first shows each twin.
PAIRS = {
    Window: "T = 7",
    Causal: "T = 16",
    Switch: "T = 17",
    Clamped: "T = 12",
    Last: "T = 6",
    Pooled: "T = 1",
    Batch: "B = 2",
    Blocks: "T = 13",
    Written: "T = 8",
    Rolled: "T = 3",
}
BATCH_OF_ONE = (Batch,)
ALL_SIZES = "B >= 1, T >= 1"
# A quotient is no polynomial; the largest of positions and the last of them are not proved one; the
# shape of an operator's second result is not known.
HELD_BACK = (Blocks, Switch, Written)


def example(kind):
    torch.manual_seed(0)
    batch = 1 if kind in BATCH_OF_ONE else 2
    return {"x": torch.randn(batch, TOKENS, D)}


def captured(kind, form, folder):
    out = os.path.join(folder, form)
    inputs = example(kind)
    dynamic = {n: ["B", "T", None][: t.dim()] for n, t in inputs.items()}
    return capture(kind(form).eval(), inputs, out, dynamic=dynamic), out


def compare(left, right, *options):
    done = subprocess.run(
        [ISOMER, "compare", left, right, "--json", "-", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout), done.stderr


class Pairs(unittest.TestCase):
    def check(self, kind):
        with tempfile.TemporaryDirectory() as folder:
            graph, plain = captured(kind, "plain", folder)
            self.assertEqual(graph["version"], 2)
            _, honest = captured(kind, "honest", folder)
            _, twin = captured(kind, "twin", folder)
            report, said = compare(plain, honest)
            self.assertEqual(report["verdict"], "equivalent", said)
            scope = report["scope"]
            text = "captured sizes" if kind in HELD_BACK else ALL_SIZES
            self.assertEqual(scope["text"], text, scope["held_back_by"])
            self.assertEqual(scope["held_back_by"] == [], kind not in HELD_BACK)
            self.assertGreater(len(scope["looked_at"]), 8)
            wrong = [x for x in scope["looked_at"] if x["verdict"] != "equivalent"]
            self.assertEqual(wrong, [], said)
            report, said = compare(plain, twin, "--disable", "sizes")
            self.assertEqual(report["verdict"], "equivalent", said)
            report, said = compare(plain, twin)
            self.assertEqual(report["verdict"], "different", said)
            scope = report["scope"]
            self.assertEqual((scope["first"], scope["text"]), (PAIRS[kind], PAIRS[kind]))
            self.assertEqual(scope["held_back_by"], [])
            self.assertIn("all of the above is of %s, the smallest" % PAIRS[kind], said)
            self.assertNotIn("the verdict is for the captured sizes", said)
            self.assertIn("first at %s [" % PAIRS[kind], said.splitlines()[-1])


for kind in PAIRS:
    setattr(Pairs, "test_" + kind.__name__.lower(), lambda self, k=kind: self.check(k))


class Rows(Case):
    """Masks of the least finite number, or of minus infinity. Beyond twelve tokens the twin hides
    all that is to be seen, so that the two are one only before."""

    end = None

    def forward(self, x):
        pos = torch.arange(x.shape[1])
        by = pos[:, None] - pos[None, :]
        seen = (by >= 0) & (by < 4)
        if self.end:
            seen = seen & (pos[None, :] < self.end)
        scores = (self.q(x) @ self.k(x).transpose(1, 2)) / 2
        if self.form == "plain":
            low = torch.finfo(torch.float32).min
            return (scores + torch.where(seen, 0.0, low)).softmax(-1) @ x
        return scores.masked_fill(~seen, float("-inf")).softmax(-1) @ x


class HiddenRows(Rows):
    end = 12


class Spread(Case):
    """A sum of squares, which is no number at one token where it is made of a variance."""

    def forward(self, x):
        if self.form == "plain":
            return x.var(1) * (x.shape[1] - 1)
        return (x - x.mean(1, keepdim=True)).square().sum(1)


class Places(Case):
    """Places along the tokens, held to the last one as a size, as a number, or in few bits."""

    def forward(self, x):
        places = x.argmax(1)
        if self.form == "last":
            return places.clamp(0, x.shape[1] - 1)
        if self.form == "number":
            return places.clamp(0, TOKENS - 1)
        return places.to(torch.int8).to(torch.int64) if self.form == "narrow" else places


class Scopes(unittest.TestCase):
    """What a verdict is for, where masks are read as minus infinity."""

    def scope(self, kind):
        with tempfile.TemporaryDirectory() as folder:
            paths = [captured(kind, form, folder)[1] for form in ("plain", "honest")]
            alone, said = compare(*paths, "--disable", "sizes")
            self.assertEqual(alone["verdict"], "equivalent", said)
            return alone["scope"], compare(*paths)[0], said

    def test_rows_that_keep_an_element(self):
        scope, looked, said = self.scope(Rows)
        self.assertEqual((scope["text"], looked["verdict"]), (ALL_SIZES, "equivalent"))
        self.assertTrue(said.endswith("isomer: EQUIVALENT [proved, for %s]\n" % ALL_SIZES), said)

    def test_rows_that_keep_none_at_other_sizes(self):
        scope, looked, _ = self.scope(HiddenRows)
        self.assertEqual(scope["text"], "captured sizes")
        self.assertIn("each row keeps an element", scope["held_back_by"][0])
        self.assertEqual((looked["verdict"], looked["scope"]["first"]), ("different", "T = 16"))

    def test_the_last_place_is_a_size(self):
        """A bound of the captured last place holds at no greater size, one that is a size holds at
        all, and places in eight bits are what they are up to 128."""
        with tempfile.TemporaryDirectory() as folder:
            plain = captured(Places, "plain", folder)[1]
            for form, first in (("last", None), ("number", "T = 6"), ("narrow", "T = 129")):
                other = captured(Places, form, folder)[1]
                report, said = compare(plain, other, "--disable", "sizes")
                self.assertEqual(report["verdict"], "equivalent", said)
                text = "captured sizes" if first else ALL_SIZES
                self.assertEqual(report["scope"]["text"], text, said)
                if form == "narrow":
                    self.assertEqual(compare(plain, other)[0]["scope"]["first"], first)

    def test_what_is_no_number_at_the_least_size(self):
        """A variance of one token is 0/0, so that what it is times T - 1 holds from two on; the
        checker takes no more."""
        with tempfile.TemporaryDirectory() as folder:
            paths = [captured(Spread, form, folder)[1] for form in ("plain", "honest")]
            proof = os.path.join(folder, "c.json")
            report, said = compare(*paths, "--disable", "sizes", "--certificate", proof)
            self.assertEqual(report["scope"]["text"], "B >= 1, T >= 2", said)
            for least, status in ((2, 0), (1, 1)):
                with open(proof) as f:
                    whole = json.load(f)
                whole["sizes"]["symbols"][1]["min"] = least
                with open(proof, "w") as f:
                    json.dump(whole, f)
                done = subprocess.run([ISOMER, "check", proof, *paths, "-q"], capture_output=True)
                self.assertEqual(done.returncode, status, done.stdout)
            report, said = compare(*paths)
            self.assertEqual((report["verdict"], report["scope"]["first"]), ("different", "T = 1"))

    def test_a_model(self):
        """Transformers' eager attention and its sdpa are one for every length and batch."""
        with tempfile.TemporaryDirectory() as folder:
            for attention in ("eager", "sdpa"):
                out = os.path.join(folder, attention)
                words = "hf gpt2 --reduce --layers 1 --dynamic length,batch --attn".split()
                done = commands.run([*words, attention, "-o", out])
                self.assertEqual(done.returncode, 0, done.stderr)
            paths = [os.path.join(folder, name) for name in ("eager", "sdpa")]
            report, said = compare(*paths)
            self.assertEqual(report["scope"]["text"], "B >= 2, T >= 2", said)
            report, said = compare(*paths, "--require", "certified")
            self.assertTrue(said.endswith("[certified; proved for B >= 2, T >= 2]\n"), said)


class Folded(Case):
    """A weight that is scaled when it is used, or was when the model was loaded; the twin knows
    seven positions alone."""

    def __init__(self, form):
        super().__init__(form)
        self.scale = nn.Parameter(torch.rand(D) + 0.5)
        if form != "plain":
            self.w = nn.Parameter(self.q.weight.detach() * self.scale.detach()[:, None])

    def forward(self, x):
        if self.form == "plain":
            return x @ (self.q.weight * self.scale[:, None]).T
        y = x @ self.w.T
        return y * (torch.arange(x.shape[1]) < 7)[None, :, None] if self.form == "twin" else y


class Halves(Case):
    """An output in one piece or in two; the twin forgets to scale long sequences."""

    def forward(self, x):
        y = self.q(x)
        if self.form == "plain":
            return y
        if self.form == "twin":
            y = y * (2 - (torch.arange(x.shape[1]) < 9).float())[None, :, None]
        return y[..., :3], y[..., 3:]


class Inferred(unittest.TestCase):
    """What was inferred at the captured sizes is at others, too: parameters that were computed, and
    how outputs are put together."""

    def check(self, kind, first):
        with tempfile.TemporaryDirectory() as folder:
            paths = {form: captured(kind, form, folder)[1] for form in ("plain", "honest", "twin")}
            report, said = compare(paths["plain"], paths["honest"])
            self.assertEqual(report["verdict"], "equivalent", said)
            looked = report["scope"]["looked_at"]
            self.assertGreater(len(looked), 4, said)
            self.assertEqual([x for x in looked if x["verdict"] != "equivalent"], [], said)
            report, said = compare(paths["plain"], paths["twin"])
            self.assertEqual((report["verdict"], report["scope"]["first"]), ("different", first))

    def test_folds(self):
        self.check(Folded, "T = 8")

    def test_outputs(self):
        self.check(Halves, "T = 10")


class Branch(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[0] <= 16 else x.cos()


class Fixed(nn.Module):
    def forward(self, x):
        return x + torch.ones(9)


class Captures(unittest.TestCase):
    def capture(self, module, inputs, **more):
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(said):
            graph = capture(module.eval(), inputs, os.path.join(folder, "c"), **more)
        return graph, said.getvalue()

    def test_a_branch_becomes_a_bound(self):
        graph, _ = self.capture(Branch(), torch.randn(9), dynamic={"x": ["T"]})
        self.assertEqual(graph["symbols"], [{"name": "T", "min": 1, "value": 9, "max": 16}])
        self.assertEqual(graph["guards"], [])

    def test_what_is_fixed_is_said(self):
        graph, said = self.capture(Fixed(), torch.randn(9), dynamic={"x": ["T"]})
        self.assertEqual(graph["version"], 1)
        self.assertIn("isomer-capture: T of x is fixed at 9 by the program\n", said)

    def test_a_range_is_kept(self):
        graph, _ = self.capture(Branch(), torch.randn(9), dynamic={"x": {0: ("T", 4, 12)}})
        self.assertEqual(graph["symbols"], [{"name": "T", "min": 4, "value": 9, "max": 12}])

    def test_without_names_nothing_changes(self):
        graph, said = self.capture(Branch(), torch.randn(9))
        self.assertEqual((graph["version"], said), (1, ""))

    def test_wrong_names(self):
        for dynamic, text in (
            ({"y": ["T"]}, "no input tensor"),
            ({"x": ["T", "B"]}, "no dimension"),
            ({"x": ["min"]}, "no name"),
            ({"x": ["a b"]}, "no name"),
        ):
            with self.assertRaisesRegex(CaptureError, text):
                self.capture(Branch(), torch.randn(9), dynamic=dynamic)


class Inputs(unittest.TestCase):
    """What the inputs of two captures become at other sizes, where they have a structure."""

    def both(self, left, right, inputs, renamed):
        """Captures of two functions of the same inputs, which have other names on the right."""
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for side, function in enumerate((left, right)):
                names = {n: renamed.get(n, n) if side else n for n in inputs}
                given = {names[n]: t for n, (t, _) in inputs.items()}
                dynamic = {names[n]: dims for n, (_, dims) in inputs.items()}
                paths.append(os.path.join(folder, str(side)))
                call = lambda m, f=function, **kw: f(*kw.values())  # noqa: E731
                capture(Case("").eval(), given, paths[-1], call=call, dynamic=dynamic)
            return compare(*paths)

    def test_positions_masks_and_other_names(self):
        torch.manual_seed(0)
        inputs = {
            "x": (torch.randn(2, 5, D), ["B", "T", None]),
            "positions": (torch.arange(5).expand(2, 5).contiguous(), ["B", "T"]),
            "mask": (torch.ones(5, 5).tril().long(), ["T", "T"]),
        }

        def plain(x, positions, mask):
            scores = (x @ x.transpose(1, 2)).masked_fill(mask == 0, -1e9)
            return scores.softmax(-1) @ x + positions[:, :, None]

        def own(x, positions, mask):
            """The same, but that it makes positions and mask itself."""
            pos = torch.arange(x.shape[1])
            scores = (x @ x.transpose(1, 2)).masked_fill(pos[None, :] > pos[:, None], -1e9)
            return scores.softmax(-1) @ x + pos[None, :, None] + 0 * (mask.sum() + positions.sum())

        def twin(x, positions, mask):
            low = torch.where(positions > 8, positions - 9, positions)
            return plain(x, low, mask)

        renamed = {"positions": "pos", "mask": "seen"}
        report, said = self.both(plain, plain, inputs, renamed)
        self.assertEqual(report["verdict"], "equivalent", said)
        looked = report["scope"]["looked_at"]
        self.assertEqual([x for x in looked if x["verdict"] != "equivalent"], [], said)
        self.assertGreater(len(looked), 8)
        report, said = self.both(plain, own, inputs, {})
        self.assertNotEqual(report["verdict"], "different", said)
        looked = report["scope"]["looked_at"]
        self.assertEqual([x for x in looked if x["verdict"] == "different"], [], said)
        report, said = self.both(plain, twin, inputs, renamed)
        self.assertEqual(report["scope"]["first"], "T = 10", said)
