"""capture() on small modules: what exported graphs leave to us, and what must be refused."""

import json
import os
import shutil
import tempfile
import unittest

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    torch = None

from isomer_capture import CaptureError

if torch is None:
    raise unittest.SkipTest("PyTorch is not installed")

from isomer_capture import capture  # noqa: E402


class Fn(nn.Module):
    """A function as a module, with a weight to use."""

    def __init__(self, fn):
        super().__init__()
        self.fn, self.w = fn, nn.Parameter(torch.randn(4, 6))

    def forward(self, x):
        return self.fn(self, x)


def doubled(x):
    return x * 2


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = os.path.join(self.folder.name, "c")

    def capture(self, module, inputs, **options):
        """capture() has compared the graph with the module before it returns."""
        graph = capture(module.eval(), inputs, self.out, **options)
        with open(os.path.join(self.out, "graph.json")) as f:
            self.assertEqual(json.load(f), json.loads(json.dumps(graph)))
        return graph

    def ops(self, graph):
        return [n["op"] for n in graph["nodes"]]

    def refused(self, words, module, inputs, **options):
        with self.assertRaises(CaptureError) as e:
            capture(module, inputs, self.out, **options)
        for w in words:
            self.assertIn(w, str(e.exception))
        self.assertFalse(os.path.exists(self.out), "something was written")
        self.assertEqual(os.listdir(self.folder.name), [])


class Configured(nn.Module):
    """A model with a configuration, as Transformers' have."""

    def __init__(self, **config):
        super().__init__()
        self.config = type("Config", (), config)()
        self.e = nn.Embedding(16, 4)

    def forward(self, input_ids, attention_mask, position_ids):
        return self.e(input_ids) * attention_mask.unsqueeze(-1) + position_ids.unsqueeze(-1)


class Domains(Case):
    CONFIG = {"vocab_size": 16, "pad_token_id": 3, "max_position_embeddings": 32}

    def domains(self, ids, mask, config=CONFIG, **options):
        inputs = (torch.tensor([ids]), torch.tensor([mask]), torch.arange(len(ids)))
        graph = self.capture(Configured(**config), inputs, **options)
        return {n["name"]: n["domain"] for n in graph["nodes"] if "domain" in n}

    def test_of_a_configuration(self):
        said = self.domains([5, 6, 7], [1, 1, 1])
        self.assertEqual(
            said,
            {
                "input_ids": {"range": [0, 15], "exclude": [3]},
                "attention_mask": {"mask": "right"},
                "position_ids": {"range": [0, 31]},
            },
        )

    def test_the_example_goes_first(self):
        said = self.domains([3, 6, 7], [0, 1, 1])
        self.assertEqual(
            (said["input_ids"], said["attention_mask"]), ({"range": [0, 15]}, {"mask": "left"})
        )
        self.assertEqual(self.domains([5, 6, 7], [1, 0, 1])["attention_mask"], {"mask": "any"})
        self.assertNotIn("attention_mask", self.domains([5, 6, 7], [0, 0, 0]))

    def test_given(self):
        said = self.domains(
            [5, 6, 7], [1, 1, 1], domains={"input_ids": {"range": [4, 9]}, "position_ids": None}
        )
        self.assertEqual(
            said, {"input_ids": {"range": [4, 9]}, "attention_mask": {"mask": "right"}}
        )
        self.assertEqual(self.domains([5, 6, 7], [1, 1, 1], domains=False), {})
        self.assertEqual(
            self.domains([5, 6, 7], [1, 1, 1], config={}), {"attention_mask": {"mask": "right"}}
        )

    def test_wrong(self):
        inputs = (torch.tensor([[5, 6]]), torch.tensor([[1, 1]]), torch.arange(2))
        self.refused(
            ["no input ids", "input_ids"],
            Configured().eval(),
            inputs,
            domains={"ids": {"range": [0, 1]}},
        )
        self.refused(
            ["rnage"], Configured().eval(), inputs, domains={"input_ids": {"rnage": [0, 1]}}
        )


def writes_slice(m, x):
    y = torch.zeros(4, 6)
    y[1:3, ::2] = x[:2, :3]
    return F.linear(y, m.w)


def writes_through_transpose(m, x):
    y = x.clone()
    y.t()[0] += 1
    y.permute(1, 0).narrow(0, 2, 2).mul_(3)
    return y


def alias_sees_write(m, x):
    y = x * 1
    flat = y.view(-1)
    a, b = y.chunk(2, dim=1)
    b.copy_(a)
    flat[5] = 7.0
    return y, flat, b


def root_write_seen_by_views(m, x):
    y = x + 0
    top = y[0]
    y.add_(1)
    y[y > 1] = -1.0
    return top * 2


def unbound(m, x):
    y = x.clone()
    rows = y.unbind(0)
    rows[2].fill_(4.0)
    y.select(1, 3).zero_()
    torch.diagonal(y).neg_()
    return y


def reshaped_copy(m, x):
    # reshape copies here: the write must not reach y.
    y = x.clone().t()
    z = y.reshape(-1)
    z.zero_()
    return y, z


def out_argument(m, x):
    y = torch.empty(4, 6)
    torch.add(x, x, out=y)
    return y * 2


def index_add(m, x):
    y = torch.zeros(4, 6)
    y.index_add_(0, torch.tensor([1, 1, 3, 0]), x)
    return y.masked_fill_(y == 0, 5.0)


def casting_write(m, x):
    y = torch.zeros(4, 6, dtype=torch.float64)
    y.copy_(x)
    y += x
    return y


def filled_diagonal(m, x):
    y, tall = x + 0, x.t().contiguous()
    y[1:].fill_diagonal_(0.5, wrap=True)
    tall.fill_diagonal_(3)
    return y, tall


class Functional(Case):
    def test_writes(self):
        x = torch.randn(4, 6)
        for fn in (
            writes_slice,
            writes_through_transpose,
            alias_sees_write,
            root_write_seen_by_views,
            unbound,
            reshaped_copy,
            out_argument,
            index_add,
            casting_write,
            filled_diagonal,
        ):
            with self.subTest(fn.__name__):
                g = self.capture(Fn(fn), (x,), more_inputs=[(torch.randn(4, 6) * 3,)])
                for op in self.ops(g):
                    base = op.split("::")[-1].split(".")[0]
                    self.assertFalse(base.endswith("_") and not base.endswith("__"), op)

    def test_a_diagonal_that_begins_anew_is_refused(self):
        with self.assertRaisesRegex(CaptureError, "no functional counterpart"):
            fn = lambda m, x: (x + 0).fill_diagonal_(0.5, wrap=True)  # noqa: E731
            self.capture(Fn(fn), (torch.randn(7, 3),))

    def test_write_without_inverse_is_refused(self):
        def fn(m, x):
            y = torch.zeros(1, 6)
            torch.as_strided(y, (2, 2), (3, 1)).add_(x[:2, :2])
            return y

        self.refused(["in place", "clone"], Fn(fn).eval(), (torch.zeros(4, 6),))

    def test_state_is_not_lost(self):
        class Counter(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("n", torch.zeros(1))

            def forward(self, x):
                self.n.add_(1)
                return x + self.n

        module = Counter()
        g = self.capture(module, (torch.zeros(3),))
        self.assertEqual(g["metadata"]["written_leaves"], ["n"])
        self.assertEqual(module.n.item(), 0, "capturing changed the module")


class Leaves(Case):
    def test_tied_is_one_leaf_and_unused_is_dropped(self):
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b, self.unused = (
                    nn.Embedding(5, 4),
                    nn.Linear(4, 5, bias=False),
                    nn.Linear(2, 2),
                )
                self.b.weight = self.a.weight
                self.register_buffer("table", torch.arange(4.0), persistent=False)

            def forward(self, ids):
                return self.b(self.a(ids) + self.table)

        g = self.capture(Tied(), (torch.tensor([[0, 3]]),))
        leaves = [n["name"] for n in g["nodes"] if n["op"] in ("parameter", "buffer")]
        self.assertEqual(sorted(leaves), ["a.weight", "table"])
        self.assertEqual(g["metadata"]["tied"], {"b.weight": "a.weight"})

    def test_constants_and_places(self):
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 4))

            def forward(self, x):
                with torch.no_grad(), torch.autocast("cpu", enabled=False):
                    return self.inner(x) + torch.tensor([1.0, 2.0, 3.0, 4.0])

        g = self.capture(M(), (torch.randn(2, 6),), trace=True, output_names=["y"])
        self.assertIn("aten::layer_norm", self.ops(g))
        self.assertIn("aten::linear", self.ops(g))
        norm = next(n for n in g["nodes"] if n["op"] == "aten::layer_norm")
        self.assertEqual(norm["scope"], "inner.0")
        line = next(n for n in g["nodes"] if n["op"] == "aten::add.Tensor")["source"]
        self.assertRegex(line, r"^([^/].*/)?test_modules\.py:\d+$")
        self.assertEqual(g["outputs"][0]["name"], "y")
        self.assertTrue(os.path.exists(os.path.join(self.out, "trace.safetensors")))

    def test_scope_and_source_are_of_the_code_that_ran(self):
        """An operator of a function has the function's line and the forward's that called it; one
        of the root has no module, also after a child has run."""
        line = doubled.__code__.co_firstlineno + 1

        class Child(nn.Module):
            def forward(self, x):
                return doubled(x.exp())

        class Root(nn.Module):
            def __init__(self):
                super().__init__()
                self.child = Child()

            def forward(self, x):
                return self.child(x) + 1

        g = self.capture(Root(), (torch.randn(3),))
        exp, double, add = (n for n in g["nodes"] if n["op"] in self.OPS)
        file = os.path.basename(__file__)
        forward = Child.forward.__code__.co_firstlineno + 1
        self.assertEqual([n.get("scope") for n in (exp, double, add)], ["child", "child", None])
        self.assertTrue(exp["source"].endswith("%s:%d" % (file, forward)), exp)
        self.assertTrue(double["source"].endswith("%s:%d" % (file, line)), double)
        self.assertTrue(double["caller"].endswith("%s:%d" % (file, forward)), double)
        self.assertNotIn("caller", exp)
        self.assertNotIn("caller", add)

    OPS = ("aten::exp", "aten::mul.Tensor", "aten::add.Tensor")

    def test_inputs_and_outputs_by_name(self):
        g = self.capture(
            Fn(lambda m, x: {"a": x["p"] + 1, "b": [x["q"], x["p"] * 2]}),
            {"x": {"p": torch.randn(2), "q": torch.randn(3)}},
            outputs=["b.1"],
        )
        self.assertEqual([n["name"] for n in g["nodes"] if n["op"] == "input"], ["x.p", "x.q"])
        self.assertEqual([o["name"] for o in g["outputs"]], ["b.1"])

    def test_data_of_a_parameter(self):
        g = self.capture(Fn(lambda m, x: x @ m.w.data.t()), (torch.randn(2, 6),))
        self.assertIn("w", [n["name"] for n in g["nodes"] if n["op"] == "parameter"])

    def test_layer_that_compiles_itself(self):
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.f = torch.compile(lambda x: F.gelu(x) * 2)

            def forward(self, x):
                return self.f(x)

        self.assertIn("aten::gelu", self.ops(self.capture(M(), (torch.randn(3),))))

    def test_custom_operators(self):
        def scale_into(x, out, layer_name, more=None):
            out.copy_(x * 3)

        with torch.library._scoped_library("isomer_test", "DEF") as lib:
            lib.define(
                "scale_into(Tensor x, Tensor(a!) out, str layer_name, Tensor? more=None) -> ()"
            )
            lib.impl("scale_into", scale_into, "CPU")
            lib._register_fake("scale_into", lambda x, out, layer_name, more=None: None)

            def fn(m, x):
                y = torch.empty_like(x)
                torch.ops.isomer_test.scale_into(x, y.view(-1, 6), "layer")
                return y + 1

            g = self.capture(
                Fn(fn),
                (torch.randn(4, 6),),
                attributes={"isomer_test::scale_into": lambda layer_name, **_: {"factor": 3.0}},
            )
        node = next(n for n in g["nodes"] if n["op"] == "isomer_test::scale_into")
        self.assertEqual(node["functionalized"], {"returns": 0, "writes": ["out"]})
        self.assertEqual(node["attributes"], {"factor": 3.0})
        self.assertEqual(sorted(node["kwargs"]), ["layer_name", "out", "x"])


class Refusals(Case):
    def test_training_mode(self):
        self.refused(["eval()", "dropout"], nn.Dropout(), (torch.randn(3),))
        block = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
        before = block[1].running_mean.clone()
        self.refused(["eval()", "of 1"], block, (torch.randn(5, 3),))
        self.assertTrue(torch.equal(block[1].running_mean, before))
        self.assertTrue(block.training and block[1].training)

    def test_training_mode_that_changes_nothing(self):
        module = nn.Sequential(nn.Linear(3, 3), nn.GELU(), nn.Dropout(0.0))
        module[1].eval()
        graph = capture(module, (torch.randn(2, 3),), self.out)
        self.assertEqual([m.training for m in module], [True, False, True])
        shutil.rmtree(self.out)
        self.assertEqual(graph["nodes"], self.capture(module, (torch.randn(2, 3),))["nodes"])

    def test_random(self):
        self.refused(["random"], Fn(lambda m, x: x + torch.rand(6)).eval(), (torch.randn(4, 6),))

    def test_branch_on_data(self):
        self.refused(
            ["data"], Fn(lambda m, x: x if x.sum() > 0 else -x).eval(), (torch.randn(4, 6),)
        )

    def test_operators_of_higher_order(self):
        from torch._higher_order_ops.while_loop import while_loop

        x = torch.randn(4, 6)
        branch = Fn(
            lambda m, x: torch.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, (x,))
        ).eval()
        self.refused(["cond", "choose the branch"], branch, (x,))

        def twice(m, x):
            start = (torch.tensor(0), x)
            return while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), start)[1]

        self.refused(["while_loop", "a loop as its steps"], Fn(twice).eval(), (x,))

    def test_number_out_of_a_tensor(self):
        module = Fn(lambda m, x: x * x.abs().max().item()).eval()
        self.refused(["specialize"], module, (torch.randn(4, 6),))
        g = self.capture(module, (torch.randn(4, 6),), specialize=True)
        self.assertEqual(len(g["metadata"]["folded"]), 1)
        self.refused_again(module)

    def test_what_cannot_be_traced_is_recorded_as_it_runs(self):
        class Branch(nn.Module):
            """Branches on a buffer, counts its calls, and writes through a strided view."""

            def __init__(self):
                super().__init__()
                self.a = nn.Linear(6, 6)
                self.register_buffer("p", torch.ones(1))
                self.register_buffer("n", torch.zeros(6))

            def forward(self, x):
                self.n.add_(1)
                if self.p > 0.5:
                    x = self.a(x) * self.p
                x = torch.relu(x)
                x[:, ::2][:, 1:] = x[:, :2] + 1
                return {"y": x + self.n, "z": x.sum()}

        module, x = Branch().eval(), torch.randn(4, 6)
        self.refused(["number", "specialize", "test_modules.py"], module, (x,))
        g = self.capture(module, (x,), specialize=True, more_inputs=[(2 * x,)])
        self.assertTrue(g["metadata"]["recorded"])
        self.assertEqual(
            [(r["op"], r["value"]) for r in g["metadata"]["guards"]],
            [("aten::_local_scalar_dense", True)],
        )
        self.assertEqual(g["metadata"]["written_leaves"], ["n"])
        self.assertEqual(module.n.tolist(), [0] * 6, "capturing changed the module")
        self.assertIn("aten::addmm", self.ops(g))
        node = next(n for n in g["nodes"] if n["op"] == "aten::addmm")
        self.assertEqual(node["scope"], "a")
        g = self.capture(module, (x,), specialize=True, outputs=["z"])
        self.assertEqual([o["name"] for o in g["outputs"]], ["z"])

    def test_what_torch_export_leaves_in_the_graph_is_recorded(self):
        scan = Fn(lambda m, x: torch.vmap(lambda row: (row * m.w[0]).cumsum(0))(x)).eval()
        x = torch.randn(4, 6)
        g = self.capture(scan, (x,), more_inputs=[(2 * x,)])
        self.assertTrue(g["metadata"]["recorded"])
        self.assertNotIn("guards", g["metadata"])
        self.assertIn("aten::cumsum", self.ops(g))

    def test_parameters_that_are_several_tensors(self):
        from torch.testing._internal.two_tensor import TwoTensor

        module = nn.Linear(6, 4, bias=False).eval()
        module.weight = nn.Parameter(TwoTensor(torch.randn(4, 6), torch.randn(4, 6)))
        folder = os.path.join(self.folder.name, "two")
        with self.assertRaises(CaptureError):  # its result is two tensors, too
            capture(module, (torch.randn(3, 6),), folder)
        self.assertIsInstance(module.weight, TwoTensor, "capturing changed the module")

    def test_values_that_leave_torch_are_guarded(self):
        def fn(m, x):
            return x * m.w if max(m.w.tolist()[0]) > 100 else x * float(x.numpy().max())

        module = Fn(fn).eval()
        self.refused(["number"], module, (torch.randn(4, 6),))
        g = self.capture(module, (torch.randn(4, 6),), specialize=True)
        self.assertEqual(
            [r["op"] for r in g["metadata"]["guards"]], ["Tensor.tolist", "Tensor.numpy"]
        )

    def test_another_branch_on_another_input_is_refused(self):
        module = Fn(lambda m, x: x * 2 if x.sum() > 0 else x - m.w).eval()
        x = torch.ones(4, 6)
        self.capture(module, (x,), specialize=True, more_inputs=[(3 * x,)])
        shutil.rmtree(self.out)
        self.refused(["set 1"], module, (x,), specialize=True, more_inputs=[(-x,)])

    def refused_again(self, module):
        with self.assertRaises(CaptureError) as e:
            capture(
                module,
                (torch.randn(4, 6),),
                self.out,
                specialize=True,
                more_inputs=[(torch.randn(4, 6),)],
            )
        self.assertIn("does not compute", str(e.exception))

    def test_state_between_calls(self):
        class Cache(nn.Module):
            calls = 0

            def forward(self, x):
                self.calls += 1
                return x * self.calls

        self.refused(["state"], Cache().eval(), (torch.ones(3),))

    def test_autocast(self):
        def fn(m, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return F.linear(x, m.w)

        self.refused(["autocast"], Fn(fn).eval(), (torch.randn(4, 6),))

    def test_does_not_run(self):
        self.refused(["does not run"], nn.Linear(3, 3).eval(), (torch.randn(4, 6),))

    def test_outputs_and_folders(self):
        with self.assertRaises(CaptureError):
            capture(nn.Linear(3, 3).eval(), (torch.randn(3),), self.out, outputs=["logits"])
        with self.assertRaises(CaptureError) as e:
            capture(nn.Linear(3, 3).eval(), (torch.randn(3),), os.path.dirname(__file__))
        self.assertIn("no capture", str(e.exception))


if __name__ == "__main__":
    unittest.main()
