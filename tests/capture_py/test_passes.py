"""Compilers' passes: those that leave the function as it is, and those that do not."""

import copy
import os
import tempfile
import unittest

try:
    import torch
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed") from None

import isomer
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.passes.infra.pass_base import PassResult

aten = torch.ops.aten


def block(x, w, b):
    y = torch.nn.functional.layer_norm(x, (6,), b, b, 1e-5)
    return torch.relu(y @ w - b) / 2.0 + x * 1.0 - torch.tanh(x) + y.sum(-1, keepdim=True)


def graph():
    inputs = [torch.randn(4, 6), torch.randn(6, 6), torch.rand(6) + 0.5]
    return make_fx(block)(*inputs), inputs


def each(gm, target):
    return [n for n in gm.graph.nodes if n.target is target]


def argument(target, place, value):
    """A pass that changes an argument of the first such operator."""

    def change(gm):
        node = each(gm, target)[0]
        node.update_arg(place, value(node.args[place]) if callable(value) else value)

    return change


def another(target, other):
    def change(gm):
        each(gm, target)[0].target = other

    return change


def exchanged(target):
    def change(gm):
        node = each(gm, target)[0]
        node.args = (node.args[1], node.args[0], *node.args[2:])

    return change


def without(target):
    def change(gm):
        node = each(gm, target)[0]
        node.replace_all_uses_with(node.args[0])
        gm.graph.erase_node(node)

    return change


BROKEN = {
    "another eps": argument(aten.native_layer_norm.default, 4, 1e-6),
    "weight and bias of another": argument(aten.native_layer_norm.default, 3, None),
    "operands of sub exchanged": exchanged(aten.sub.Tensor),
    "sub as add": another(aten.sub.Tensor, aten.add.Tensor),
    "tanh as sigmoid": another(aten.tanh.default, aten.sigmoid.default),
    "relu left out": without(aten.relu.default),
    "another divisor": argument(aten.div.Tensor, 1, 3.0),
    "another dimension": argument(aten.sum.dim_IntList, 1, [0]),
    "operands of mm exchanged": argument(aten.mm.default, 1, lambda n: n),
    "add left out": without(aten.add.Tensor),
}


class Passes(unittest.TestCase):
    def test_a_right_pass(self):
        def simplify(gm):
            """x * 1 is x, x / 2 is x * 0.5, x @ w is (w^T @ x^T)^T."""
            without(aten.mul.Tensor)(gm)
            node = each(gm, aten.div.Tensor)[0]
            node.target, node.args = aten.mul.Tensor, (node.args[0], 0.5)
            product = each(gm, aten.mm.default)[0]
            with gm.graph.inserting_before(product):
                a, b = (gm.graph.call_function(aten.t.default, (x,)) for x in product.args)
                turned = gm.graph.call_function(aten.mm.default, (b, a))
                back = gm.graph.call_function(aten.t.default, (turned,))
            product.replace_all_uses_with(back)
            gm.graph.erase_node(product)

        gm, inputs = graph()
        text = str(gm.graph)
        self.assertTrue(isomer.check_pass(simplify, gm, inputs))
        self.assertEqual(str(gm.graph), text)  # it was tried on a copy

    def test_broken_passes(self):
        gm, inputs = graph()
        for name, change in BROKEN.items():
            with self.subTest(name):
                if name == "operands of mm exchanged":
                    change = exchanged(aten.mm.default)
                    square = [torch.randn(6, 6), *inputs[1:]]
                    made = make_fx(block)(*square)
                    result = isomer.check_pass(change, made, square)
                else:
                    result = isomer.check_pass(change, gm, inputs)
                self.assertEqual(result.verdict, "different", result.text)

    def test_a_pass_of_a_graph_and_drawn_inputs(self):
        gm, _ = graph()

        def negate(g):
            node = next(n for n in g.nodes if n.target is aten.tanh.default)
            node.target = aten.sin.default

        self.assertEqual(isomer.check_pass(negate, gm, of_graph=True).verdict, "different")

    def test_a_graph_of_modules(self):
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).eval()
        gm = torch.fx.symbolic_trace(model)

        def scale(gm):
            gm.get_submodule("0").weight.data.mul_(2)

        x = [torch.randn(3, 4)]
        before = model[0].weight.clone()
        self.assertEqual(isomer.check_pass(scale, gm, x).verdict, "different")
        self.assertTrue(torch.equal(model[0].weight, before))
        self.assertTrue(isomer.check_pass(lambda gm: None, gm, x))

    def test_what_a_pass_gives_back_is_what_is_compared(self):
        """A pass that leaves what it was given as it is, and returns another graph."""
        gm, inputs = graph()
        ways = {
            "module": lambda new: new,
            "result": lambda new: PassResult(new, True),
            "graph": lambda new: new.graph,
        }
        for name, way in ways.items():
            for change in (lambda gm: None, argument(aten.div.Tensor, 1, 3.0)):
                with self.subTest(name):
                    other = copy.deepcopy(gm)
                    change(other)
                    wrong = str(other.graph) != str(gm.graph)
                    other.recompile()
                    result = isomer.check_pass(lambda _: way(other), gm, inputs)
                    self.assertEqual(result.verdict, "different" if wrong else "equivalent")
        for transform, given in (
            (lambda gm: (gm, True), gm),
            (lambda gm: torch.nn.ReLU(), gm),
            (3, gm),
            (lambda gm: None, torch.nn.ReLU()),
        ):
            with self.assertRaises(isomer.Error):
                isomer.check_pass(transform, given, inputs)

    def test_outputs_are_as_they_were(self):
        """In another layout or dtype they would be the same numbers."""

        def behind(target, *more, **how):
            def change(gm):
                node = gm.graph.output_node()
                with gm.graph.inserting_before(node):
                    last = gm.graph.call_function(target, (node.args[0], *more), how)
                node.args = (last,)

            return change

        def twice(gm):
            node = gm.graph.output_node()
            node.args = ((node.args[0], node.args[0]),)

        gm, inputs = graph()
        for change, said in (
            (behind(aten.t.default), "before the pass and float32 ["),
            (behind(aten.unsqueeze.default, 0), "before the pass and float32 [1, "),
            (behind(aten._to_copy.default, dtype=torch.float16), "before the pass and float16 ["),
            (twice, "1 outputs before the pass and 2 after it"),
        ):
            result = isomer.check_pass(change, gm, inputs)
            self.assertEqual(result.verdict, "different", said)
            self.assertIn(said, result.short())
            self.assertIn(said, result.text)
            self.assertEqual(result.report["verdict"], "different")
        self.assertTrue(isomer.check_pass(behind(aten.alias.default), gm, inputs))

    def test_inputs_that_do_not_fit_are_refused(self):
        gm, inputs = graph()
        for given, said in (
            (inputs[:1], "1 example inputs for"),
            ([x.double() for x in inputs], "and is given float64"),
            ([x[:1] for x in inputs], r"is float32 \[.*\], and is given float32 \[1"),
            ("abc", "inputs are a list"),
            ([3 for _ in inputs], "and is given int"),
        ):
            with self.assertRaisesRegex(isomer.Error, said):
                isomer.check_pass(lambda gm: None, gm, given)

    def test_a_pass_that_fails_is_told_of_in_a_line(self):
        def fails(gm):
            raise KeyError("no such node\nand more")

        def broken(gm):
            each(gm, aten.mm.default)[0].args = ()

        gm, inputs = graph()
        for change, said in ((fails, "the pass fails fails: KeyError"), (broken, "not checked: ")):
            with self.assertRaisesRegex(isomer.Error, said) as e:
                isomer.check_pass(change, gm, inputs)
            self.assertNotIn("\n", str(e.exception))

    def test_what_cannot_be_captured(self):
        gm = make_fx(lambda x: torch.bernoulli(x))(torch.rand(3))
        with self.assertRaisesRegex(isomer.Error, "random"):
            isomer.check_pass(lambda gm: None, gm, [torch.rand(3)])

    def test_other_backends(self):
        for wrong, said in (
            ({"backend": "eager"}, "inductor"),
            ({"on_difference": "shout"}, "on_difference is"),
            ({"options": "--rounding"}, "options is a list"),
            ({"keep": __file__}, "cannot be made"),
        ):
            with self.assertRaisesRegex(isomer.Error, said):
                isomer.checked(**wrong)


class Inductor(unittest.TestCase):
    def compiled(self, **how):
        torch.manual_seed(0)
        torch._dynamo.reset()
        layers = torch.nn.Linear(6, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)
        model = torch.nn.Sequential(*layers).eval()

        def call(x):
            return model(x + 0) * 1 - torch.zeros(3)

        backend = isomer.checked("inductor", generate=False, **how)
        x = torch.randn(2, 6)
        with torch.no_grad():
            got = torch.compile(call, backend=backend, dynamic=False)(x)
            self.assertLess((got - call(x)).abs().max(), 1e-4 if not how else 10)
        return backend.checks

    def test_its_own_passes(self):
        checks = self.compiled()
        self.assertTrue(checks)
        for check in checks:
            self.assertIsNotNone(check.result, str(check))
            self.assertEqual(check.result.verdict, "equivalent", str(check))

    def test_a_broken_pass_is_named(self):
        def broken(g):
            node = next(n for n in g.nodes if n.target is aten.relu.default)
            node.target = aten.sigmoid.default

        seen = []
        with (
            tempfile.TemporaryDirectory() as folder,
            torch._inductor.config.patch(post_grad_custom_post_pass=broken),
        ):
            self.compiled(on_difference=seen.append, keep=folder)
            self.assertEqual([c.name for c in seen], ["post_grad_custom_post_pass"])
            self.assertEqual(seen[0].stage, "post_grad_passes")
            self.assertTrue(os.path.exists(os.path.join(seen[0].folder, "repro.py")))
        with torch._inductor.config.patch(post_grad_custom_post_pass=broken):
            with self.assertRaisesRegex(Exception, "the pass post_grad_custom_post_pass of"):
                self.compiled()


if __name__ == "__main__":
    unittest.main()
