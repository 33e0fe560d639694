#!/usr/bin/env python3
"""The modules that `isomer rules export --to fx|inductor` writes, on graphs of PyTorch. Needs
torch.

Every case has a rule, a module whose exported graph the rule rewrites (the result must agree), and
modules on which the pattern matches and one precondition fails: these must stay as they are. Each
of those is then tried with that precondition left out of the exported module; the graph must then
be rewritten, and wrongly: so the test sees what each check is there for."""

import argparse
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile

import torch

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
aten = torch.ops.aten


class Wrong(Exception):
    pass


def expect(ok, message, *args):
    if not ok:
        raise Wrong(message % args if args else message)


def module(target, rules, tmp, change=None):
    path, out = os.path.join(tmp, "r.rules"), os.path.join(tmp, "m%d.py" % len(os.listdir(tmp)))
    with open(path, "w") as f:
        f.write(rules)
    p = subprocess.run(
        [OPTIONS.isomer, "rules", "export", "--unchecked", "--to", target, path, "-o", out],
        capture_output=True,
        text=True,
    )
    expect(p.returncode == 0, "export: %s", p.stderr)
    if change:
        text = open(out).read()
        for old, new in change:
            expect(old in text, "the module has no %s", old)
            text = text.replace(old, new)
        open(out, "w").write(text)
    spec = importlib.util.spec_from_file_location("exported", out)
    m = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(m)
    return m.rewrite if target == "fx" else m.apply


def graph_of(f, args):
    class M(torch.nn.Module):
        def forward(self, *x):
            return f(*x)

    return torch.export.export(M(), args).module()


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and torch.allclose(a, b, rtol=1e-4, atol=1e-5)


SPLIT = (
    "(rule split (var x f (N M)) (lhs (getitem (aten::split.Tensor x S 1) 1)) (rhs (getitem "
    "(aten::chunk x 3 1) 1)) (where (= (* 3 S) M)))"
)
SCALE = (
    "(rule scale (var x f (N D)) (attr s float) (lhs (aten::mul.Tensor x s)) (rhs "
    "(aten::div.Tensor x (* 1 D))) (where (= (* s D) 1)))"
)
LINEAR = (
    "(rule linear (var x f (N K)) (var w f (K M)) (var b f (M)) (lhs (aten::linear x "
    "(aten::transpose.int w 0 1) b)) (rhs (aten::addmm b x w)))"
)
DROP = "(rule drop (var x f _) (attr p float) (lhs (aten::dropout x p false)) (rhs x))"
CAST = "(rule cast (var x f _) (lhs (aten::to.dtype (aten::to.dtype x float16) float32)) (rhs x))"
GELU = (
    '(rule gelu (var x f _) (lhs (aten::relu (aten::gelu x :approximate "tanh"))) (rhs '
    "(aten::relu (aten::mul.Tensor x (aten::gelu x)))))"
)
# Integers of 8 bits wrap.
KIND_RULE = (
    "(rule kind (var x f (N)) (lhs (aten::abs (aten::mul.Tensor x 200))) (rhs "
    "(aten::mul.Tensor (aten::abs x) 200)))"
)
WHOLE = "(rule whole (var x f (N K)) (lhs (aten::slice.Tensor x 1 0 K)) (rhs (aten::alias x)))"
RANK = "(rule rank (var x f (N K)) (lhs (aten::softmax.int x 1)) (rhs (aten::softmax.int x -1)))"
POSITIVE = (
    "(rule positive (var x f (N K)) (attr e float) (lhs (aten::leaky_relu x e)) (rhs "
    "(aten::maximum x (aten::mul.Tensor x e))) (where (< e 1)))"
)
ROLL = (
    "(rule roll (var x f (M N)) (lhs (aten::roll x (list (- N 1)) (list 1))) (rhs (aten::roll "
    "x (list -1) (list 1))))"
)


def r(*shape, **kw):
    torch.manual_seed(sum(shape))
    return torch.randn(*shape, **kw)


def split_at(n):
    return lambda x: aten.split.Tensor(x, n, 1)[1]


# The name of a case; a rule; the (function, arguments) that it rewrites; and the (function,
# arguments) that it does not, with the part of the module that is left out there.
EXPRESSION = (
    'need(found is not None and found[0] == v, "an expression has another value")',
    "pass",
)
CONDITION = ('need(self.holds(w) is True, "a condition does not hold")', "pass")
KIND = ('need(kind_of(t.dtype) == v["kind"], "kind of values")', "pass")
RANKS = (
    'need(len(shape) >= len(dims) if want["leading"] else len(shape) == len(dims), "rank")',
    "pass",
)
FLOATS = ('need(len(self.dtypes) <= 1, "casts between float dtypes")', "pass")
RESULT = (
    'need(alike(value, fake(tensor_of(root))), "shape, dtype or strides of the result")',
    "pass",
)
FLAG = ('need(isinstance(value, bool) and value == t["bool"], "flag")', "pass")
INTEGER = ('need(whole and value == t["int"], "integer")', "pass")
TEXT = ('need(value == t["string"], "string")', "pass")
TWO = (
    "need(\n"
    "            type(self.name.setdefault(name, value)) is type(value)"
    " and self.name[name] == value,\n"
    '            "%s has two values" % name,\n'
    "        )",
    "self.name.setdefault(name, value)",
)
CASES = [
    ("split", SPLIT, (split_at(2), (r(4, 6),)), [((split_at(2), (r(4, 7),)), [CONDITION, RESULT])]),
    (
        "scale",
        SCALE,
        (lambda x: x * 0.125, (r(3, 8),)),
        [((lambda x: x * 0.25, (r(3, 8),)), [CONDITION])],
    ),
    (
        "linear",
        LINEAR,
        (
            lambda x, w, b: torch.nn.functional.linear(x, w.transpose(0, 1), b),
            (r(3, 4), r(4, 5), r(5)),
        ),
        [
            (
                (
                    lambda x, w, b: torch.nn.functional.linear(x, w.transpose(0, 0), b),
                    (r(3, 4), r(4, 4), r(4)),
                ),
                [INTEGER],
            )
        ],
    ),
    (
        "drop",
        DROP,
        (lambda x: torch.nn.functional.dropout(x, 0.5, False), (r(3, 4),)),
        [((lambda x: torch.nn.functional.dropout(x, 0.5, True), (r(3, 4),)), [FLAG])],
    ),
    (
        "cast",
        CAST,
        None,
        [
            (
                (
                    lambda x: aten.to.dtype(aten.to.dtype(1000 * x, torch.float16), torch.float32),
                    (r(3, 4),),
                ),
                [FLOATS],
            )
        ],
    ),
    (
        "gelu",
        GELU,
        None,
        [((lambda x: torch.relu(torch.nn.functional.gelu(x)), (r(3, 4),)), [TEXT])],
    ),
    (
        "whole",
        WHOLE,
        (lambda x: aten.slice.Tensor(x, 1, 0, 4), (r(3, 4),)),
        [((lambda x: aten.slice.Tensor(x, 1, 0, 2), (r(3, 4),)), [TWO, RESULT])],
    ),
    (
        "rank",
        RANK,
        (lambda x: torch.softmax(x, 1), (r(3, 4),)),
        [((lambda x: torch.softmax(x, 1), (r(3, 4, 2),)), [RANKS])],
    ),
    (
        "roll",
        ROLL,
        (lambda x: torch.roll(x, 5, 1), (r(3, 6),)),
        [((lambda x: torch.roll(x, 2, 1), (r(3, 6),)), [EXPRESSION])],
    ),
    (
        "positive",
        POSITIVE,
        (lambda x: torch.nn.functional.leaky_relu(x, 0.25), (r(3, 4),)),
        [((lambda x: torch.nn.functional.leaky_relu(x, 2.0), (r(3, 4),)), [CONDITION])],
    ),
    (
        "kind",
        KIND_RULE,
        (lambda x: torch.abs(x * 200), (r(4),)),
        [((lambda x: torch.abs(x * 200), (torch.arange(4, dtype=torch.int8),)), [KIND])],
    ),
]


def changed(run, f, args, **kw):
    """How often the rule was applied, and whether the result still agrees."""
    gm = graph_of(f, args)
    torch.manual_seed(1)
    want = gm(*args)
    n = sum(run(gm, direction="forward", **kw).values())
    try:
        torch.manual_seed(1)
        got = gm(*args)
    except Exception:
        return n, False
    return n, same(got, want)


def case(target, name, rule, good, bad, tmp):
    run = module(target, rule, tmp)
    if good:
        n, agrees = changed(run, *good)
        expect(n == 1 and agrees, "%s %s: rewritten %d times, agrees: %s", target, name, n, agrees)
    for (f, args), left_out in bad:
        n, agrees = changed(run, f, args)
        expect(n == 0 and agrees, "%s %s: rewritten where a precondition fails", target, name)
        n, agrees = changed(module(target, rule, tmp, left_out), f, args)
        expect(
            n == 1,
            "%s %s: without the check it is not rewritten: the test tests nothing",
            target,
            name,
        )
        expect(
            not agrees,
            "%s %s: without the check it still agrees: the test tests nothing",
            target,
            name,
        )


# ---- a model ----


class Block(torch.nn.Module):
    """As Transformers write GPT-2, and with what their exports leave behind."""

    def __init__(self, d=16):
        super().__init__()
        self.norm, self.w, self.b = (
            torch.nn.LayerNorm(d),
            torch.nn.Parameter(torch.randn(d, 3 * d) / 4),
            torch.nn.Parameter(torch.randn(3 * d)),
        )
        self.out, self.drop = torch.nn.Linear(d, d), torch.nn.Dropout(0.1)

    def forward(self, x):
        h = self.norm(x)
        qkv = torch.addmm(self.b, h.view(-1, h.shape[-1]), self.w).view(1, h.shape[1], -1)
        q, k, v = (t.contiguous().view(1, -1, 2, 8).transpose(1, 2) for t in qkv.split(16, dim=2))
        a = (
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            .transpose(1, 2)
            .reshape(1, -1, 16)
        )
        return x + self.drop(self.out(a).to(torch.float32).view(1, x.shape[1], 16))


def model_of_core(target, tmp):
    core = open(os.path.join(ROOT, "rules", "core.rules")).read()
    run = module(target, core, tmp)
    torch.manual_seed(0)
    m = torch.nn.Sequential(Block(), Block()).eval()
    x = r(1, 5, 16)
    gm = torch.export.export(m, (x,)).module()
    before = len(gm.graph.nodes)
    count = run(gm)
    expect(
        sum(count.values()) >= 4 and len(gm.graph.nodes) < before,
        "%s: %s, %d nodes of %d",
        target,
        count,
        len(gm.graph.nodes),
        before,
    )
    expect(same(gm(x), m(x)), "%s: the model's result changed", target)
    gm = torch.export.export(m, (x,)).module()
    run(gm, direction="backward")  # grows
    expect(same(gm(x), m(x)), "%s: the model's result changed, backward", target)


def a_graph_that_writes_is_left_alone(target, tmp):
    run = module(target, DROP, tmp)
    g = torch.fx.Graph()
    x = g.placeholder("x")
    x.meta["val"] = r(3)
    for call, args in ((aten.dropout.default, (x, 0.5, False)), (aten.relu_.default, (x,))):
        n = g.call_function(call, args)
        n.meta["val"] = r(3)
    g.output(n)
    expect(
        run(torch.fx.GraphModule(torch.nn.Module(), g), direction="forward") == {},
        "%s: rewritten",
        target,
    )


if __name__ == "__main__":
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    OPTIONS = a.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as TMP:
        for t in ("fx", "inductor"):
            todo = [(case, (t, *c, TMP)) for c in CASES] + [
                (model_of_core, (t, TMP)),
                (a_graph_that_writes_is_left_alone, (t, TMP)),
            ]
            for f, args in todo:
                try:
                    f(*args)
                except Wrong as e:
                    failed += 1
                    print(e)
    print("%d failed" % failed)
    sys.exit(1 if failed else 0)
