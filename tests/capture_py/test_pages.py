"""Grouped heads and a window: a prompt and a token that keep keys and values in pages, against the
whole. Heads are repeated one way and the other, so that what a page gave back and what was written
to it meet only where layouts are undone."""

import importlib.util
import unittest

if importlib.util.find_spec("torch") is None:
    raise unittest.SkipTest("torch is not installed")

import torch
from isomer_capture import capture
from test_calls import Calls
from torch.nn.functional import scaled_dot_product_attention

HEADS, GROUPS, SIZE, BLOCK, TOKENS = 4, 2, 4, 2, 6


class Grouped(torch.nn.Module):
    def __init__(self, window):
        super().__init__()
        wide, narrow = HEADS * SIZE, GROUPS * SIZE
        self.tokens = torch.nn.Embedding(16, wide)
        self.scale = torch.nn.Parameter(torch.rand(wide) + 0.5)
        self.q, self.k, self.v, self.o = (
            torch.nn.Linear(wide, n, bias=False) for n in (wide, narrow, narrow, wide)
        )
        angles = torch.arange(8)[:, None].float() * torch.tensor([1.0, 0.1])
        self.register_buffer("turns", torch.cat([angles.cos(), angles.sin()], -1))
        self.table, self.done, self.window = [3, 0, 1], 0, window

    def projected(self, x):
        h = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.scale
        return (f(h).unflatten(-1, (-1, SIZE)) for f in (self.q, self.k, self.v))

    def whole(self, ids):
        n = ids.shape[1]
        x = self.tokens(ids)
        q, k, v = (y.transpose(1, 2) for y in self.projected(x))
        cos, sin = (torch.cat([t, t], -1) for t in self.turns[torch.arange(n)].chunk(2, -1))

        def turned(x):
            low, high = x.chunk(2, -1)
            return x * cos + torch.cat([-high, low], -1) * sin

        def repeated(x):
            return x[:, :, None].expand(1, GROUPS, 2, n, SIZE).reshape(1, HEADS, n, SIZE)

        seen = torch.ones(n, n, dtype=torch.bool)
        seen = seen.tril() & seen.triu(1 - self.window)
        y = scaled_dot_product_attention(turned(q), repeated(turned(k)), repeated(v), seen)
        return {"y": x + self.o(y.transpose(1, 2).reshape(1, n, -1))}

    def behind(self, old, new):
        end = self.done + new.shape[0]
        slots = [self.table[i // BLOCK] * BLOCK + i % BLOCK for i in range(end)]
        pages = old.flatten(0, 1).index_copy(0, torch.tensor(slots[self.done :]), new)
        pages = pages.view_as(old)
        blocks = torch.tensor(self.table[: -(-end // BLOCK)])
        read = pages[blocks].flatten(0, 1)[:end].transpose(0, 1)
        return pages, read.repeat_interleave(HEADS // GROUPS, 0)

    def forward(self, ids, places=None, keys=None, values=None):
        if places is None:
            return self.whole(ids)
        x = self.tokens(ids)
        q, k, v = self.projected(x)
        cos, sin = (t[:, None] for t in self.turns.index_select(0, places).chunk(2, -1))

        def turned(x):
            low, high = x.chunk(2, -1)
            return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)

        empty = torch.zeros(4, BLOCK, GROUPS, SIZE)
        keys, k = self.behind(empty if keys is None else keys, turned(k))
        values, v = self.behind(empty if values is None else values, v)
        at = torch.arange(k.shape[1])
        by = at[None, :] - at[self.done :, None]
        scores = turned(q).transpose(0, 1) @ k.transpose(1, 2) * SIZE**-0.5
        scores = scores.masked_fill((by > 0) | (by <= -self.window), float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(0, 1).reshape(len(ids), -1)
        return {"y": x + self.o(y), "keys": keys, "values": values}


class Pages(Calls):
    def setUp(self):
        super().setUp()
        torch.manual_seed(0)
        self.model = Grouped(window=3).eval()
        self.ids = torch.randint(0, 16, (TOKENS,))
        capture(self.model, {"ids": self.ids[None]}, self.path("whole"))
        with torch.no_grad():
            before = self.model(self.ids[:-1], torch.arange(TOKENS - 1))
        self.cache = {k: before[k] for k in ("keys", "values")}
        places = torch.arange(TOKENS - 1)
        capture(self.model, {"ids": self.ids[:-1], "places": places}, self.path("prompt"))
        self.model.done = TOKENS - 1

    def step(self, *options):
        given = {"ids": self.ids[-1:], "places": torch.tensor([TOKENS - 1]), **self.cache}
        capture(self.model, given, self.path("step"))
        return self.then("whole", "prompt", (None, "step"), options=options)

    def test_the_whole(self):
        proof = self.path("c.json")
        verdict, p = self.step("--certificate", proof)
        self.assertEqual(verdict, "equivalent", p.stdout)
        words = ["check", proof, self.path("whole"), self.path("prompt"), "--then", "-"]
        self.assertEqual(self.program(*words, self.path("step"))[0], "equivalent")

    def test_another_window(self):
        self.model.window = 2
        self.assertEqual(self.step()[0], "different")

    def test_a_block_of_another_sequence(self):
        self.model.table = [3, 2, 1]
        self.assertEqual(self.step()[0], "different")
