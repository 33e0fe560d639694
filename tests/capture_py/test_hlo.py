"""XLA's HLO text: what is read computes what JAX computes; what is not read is refused with one
line. tests/hlo/generate.py makes the texts."""

import math
import os
import random
import re
import subprocess
import tempfile
import types
import unittest
from unittest import mock

try:
    import torch
except ImportError:
    torch = None

import commands
import hlo_blocks
from isomer_capture import capture, hlo
from isomer_capture.errors import CaptureError
from isomer_capture.files import read_safetensors, write_capture, write_safetensors
from isomer_capture.hlo import literals, program, text

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.environ.get("ISOMER_HLO_DATA") or os.path.join(ROOT, "tests", "hlo", "data")


def options(**more):
    default = dict(values=None, inputs=[], ranges=[], seed=0, name=None)
    return types.SimpleNamespace(**dict(default, **more))


def isomer(*words):
    return subprocess.run(
        [os.environ["ISOMER"], *words], capture_output=True, text=True, timeout=300
    )


class Joined:
    """Many graphs as one capture, so that one run checks all of them."""

    def __init__(self):
        self.nodes, self.outputs, self.weights, self.inputs, self.trace = [], [], {}, {}, {}

    def add(self, prefix, graph, arguments, results):
        """`arguments`: the leaves' values by parameter; `results`: what JAX computed."""
        ids = {n["id"]: prefix + n["id"] for n in graph["nodes"]}

        def renamed(x):
            if isinstance(x, dict):
                return {"ref": ids[x["ref"]]} if "ref" in x else x
            return [renamed(y) for y in x] if isinstance(x, list) else x

        for n in graph["nodes"]:
            n = dict(n, id=ids[n["id"]])
            if "name" in n:
                t = arguments[n["name"]]
                n["name"] = prefix + n["name"]
                (self.inputs if n["op"] == "input" else self.weights)[n["name"]] = t
            else:
                n["args"] = renamed(n["args"])
            self.nodes.append(n)
        for o in graph["outputs"]:
            self.outputs.append({"name": prefix + o["name"], "ref": ids[o["ref"]]})
            want = results[o["name"]]
            shape = next(n for n in graph["nodes"] if n["id"] == o["ref"])["outputs"][0]
            self.trace[ids[o["ref"]]] = want.to(getattr(torch, shape["dtype"]))

    def write(self, folder):
        graph = {
            "format": "isomer-capture",
            "version": 1,
            "nodes": self.nodes,
            "outputs": self.outputs,
            "metadata": {},
        }
        write_capture(folder, graph, self.weights, [self.inputs], self.trace)


class Values(unittest.TestCase):
    """Imported modules give the values that JAX computed on the same arguments."""

    def add(self, joined, values, name, path):
        module = text.read_file(path)
        graph, weights, inputs, _ = hlo.lower(module, None, options())
        names = [n["name"] for n in graph["nodes"] if n["op"] in ("input", "parameter")]
        self.assertEqual(names, hlo.leaf_names(module))
        arguments = dict(weights, **inputs)
        arguments.update((n, values["%s/%d" % (name, k)]) for k, n in enumerate(names))
        results = {o["name"]: values["%s/%s" % (name, o["name"])] for o in graph["outputs"]}
        joined.add(re.sub(r"\W", "_", os.path.basename(path)) + "_", graph, arguments, results)

    def test_functions(self):
        values = read_safetensors(os.path.join(DATA, "values.safetensors"))
        joined, names = Joined(), sorted({k.split("/")[0] for k in values})
        for name in names:
            for suffix in (".hlo", ".fused.hlo"):
                path = os.path.join(DATA, name + suffix)
                if name.startswith("max_pool_") and suffix == ".fused.hlo" and name != "max_pool":
                    continue  # not read (generate.py, NOT_FUSED)
                with self.subTest(path=os.path.basename(path)):
                    self.add(joined, values, name, path)
        with tempfile.TemporaryDirectory() as folder:
            at = os.path.join(folder, "all")
            joined.write(at)
            done = isomer("run", "--propagate", at)
            self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr)

    def test_another_value_is_noticed(self):
        values = read_safetensors(os.path.join(DATA, "values.safetensors"))
        joined = Joined()
        self.add(joined, values, "attention", os.path.join(DATA, "attention.fused.hlo"))
        name = next(iter(joined.trace))
        joined.trace[name] = joined.trace[name].clone()
        joined.trace[name].view(-1)[3] += 0.01
        with tempfile.TemporaryDirectory() as folder:
            at = os.path.join(folder, "one")
            joined.write(at)
            self.assertEqual(isomer("run", "--propagate", at).returncode, 1)


HEAD = "HloModule m\n\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
HEAD += "  ROOT c = f32[] add(a, b)\n}\n\nENTRY e {\n  x = f32[4,6]{1,0} parameter(0)\n"


def lowered(body, **more):
    module = text.parse(HEAD + body + "\n}\n", "m.hlo")
    return hlo.lower(module, None, options(**more))


class Refused(unittest.TestCase):
    """One line: the file, the line, the instruction, the reason."""

    def refused(self, body, *words):
        with self.assertRaises(CaptureError) as e:
            lowered(body)
        line = str(e.exception)
        self.assertTrue(line.startswith("m.hlo:"), line)
        self.assertNotIn("\n", line)
        for w in words:
            self.assertIn(w, line)

    def test_unknown_opcode(self):
        self.refused(
            "  ROOT y = f32[4,6]{1,0} rng-bit-generator(x)", "m.hlo:11: y (rng-bit-generator)"
        )

    def test_custom_call_by_name(self):
        self.refused('  ROOT y = f32[4,6] custom-call(x), custom_call_target="my_op"', "my_op")

    def test_wrong_shape(self):
        self.refused("  ROOT y = f32[6,6]{1,0} tanh(x)", "declared as f32[6, 6]")

    def test_unknown_operand(self):
        self.refused("  ROOT y = f32[4,6]{1,0} tanh(z)", "operand z")

    def test_left_out_constant(self):
        self.refused("  ROOT y = f32[4,6]{1,0} constant({...})", "left out")

    def test_open_end(self):
        self.refused("  ROOT y = f32[4,6]{1,0} tanh(x", "m.hlo:11")

    def test_loop_over_data(self):
        head = HEAD.replace(
            "ENTRY",
            "c {\n  s = f32[4,6] parameter(0)\n  k = f32[] constant(0)\n"
            "  t = f32[] reduce(s, k), dimensions={0,1}, to_apply=add\n"
            "  ROOT r = pred[] compare(t, k), direction=GT\n}\n\n"
            "b {\n  s = f32[4,6] parameter(0)\n  ROOT r = f32[4,6] negate(s)\n}\n\nENTRY",
        )
        body = "  ROOT y = f32[4,6] while(x), condition=c, body=b\n}\n"
        with self.assertRaisesRegex(CaptureError, "trip count depends on data"):
            hlo.lower(text.parse(head + body, "m.hlo"), None, options())


class Text(unittest.TestCase):
    def test_comments_and_strings(self):
        graph = lowered(
            "  ROOT y = (f32[4,6]{1,0}, /*index=1*/ f32[4,6]{1,0}) tuple(x, x), metadata={op_name="
            '"jit(f)/a \\"b\\" /*no*/, c=d/neg" source_file="m.py" source_line=7}'
        )[0]
        self.assertEqual([o["name"] for o in graph["outputs"]], ["output_0", "output_1"])

    def test_scope_and_source(self):
        words = 'metadata={op_name="jit(f)/block.1/mlp/tanh" source_file="a/m.py" source_line=7}'
        node = lowered("  ROOT y = f32[4,6]{1,0} tanh(x), " + words)[0]["nodes"][-1]
        self.assertEqual((node["scope"], node["source"]), ("block.1.mlp", "a/m.py:7"))

    def test_constant_over_lines(self):
        graph, weights, _, _ = lowered(
            "  k = f32[2,2] constant({ { 1, 2 },\n { 3, -inf } })\n"
            "  ROOT y = (f32[4,6], f32[2,2]) tuple(x, k)"
        )
        self.assertEqual(weights["constant_0"].tolist(), [[1, 2], [3, -float("inf")]])

    def test_reducer_is_what_it_does(self):
        """A reducer named `add` may be an or."""
        head = (
            "HloModule m\n\nadd {\n  a = pred[] parameter(0)\n  b = pred[] parameter(1)\n"
            "  ROOT c = pred[] or(a, b)\n}\n\nENTRY e {\n  x = pred[4,6] parameter(0)\n"
            "  k = pred[] constant(false)\n"
            "  ROOT y = pred[4] reduce(x, k), dimensions={1}, to_apply=add\n}\n"
        )
        graph = hlo.lower(text.parse(head, "m.hlo"), None, options())[0]
        self.assertIn("aten::any.dim", [n["op"] for n in graph["nodes"]])


class Damaged(unittest.TestCase):
    """Texts with something changed: read, or refused with one line; nothing else."""

    def change(self, words, g):
        k = g.randrange(len(words))
        how = g.randrange(4)
        if how == 0:
            words[k] = words[g.randrange(len(words))]
        elif how == 1:
            words[k] = ""
        elif how == 2:
            words[k] = g.choice(["-1", "0", "7", "{", ")", '"', "99999999999", "s32", "{0,0}", "x"])
        else:
            j = g.randrange(len(words))
            words[k], words[j] = words[j], words[k]

    def test_changed_texts(self):
        g = random.Random(3)
        paths = sorted(p for p in os.listdir(DATA) if p.endswith(".hlo"))
        read = refused = 0
        with (
            mock.patch.object(hlo, "MAX_ELEMENTS", 1 << 20),
            mock.patch.object(program, "MAX_TRIPS", 16),
        ):
            for _ in range(400):
                with open(os.path.join(DATA, g.choice(paths)), encoding="utf-8") as f:
                    words = re.split(r"(\W)", f.read())
                for _ in range(g.randrange(1, 4)):
                    self.change(words, g)
                try:
                    hlo.lower(text.parse("".join(words), "m.hlo"), None, options())
                    read += 1
                except CaptureError as e:
                    refused += 1
                    self.assertTrue(str(e).startswith("m.hlo"), str(e))
                    self.assertNotIn("\n", str(e))
        self.assertGreater(read, 20)
        self.assertGreater(refused, 100)


class Blocks(unittest.TestCase):
    """A JAX block and the PyTorch one are one function; with another epsilon they are not."""

    def compare(self, name, build, want):
        with tempfile.TemporaryDirectory() as folder:
            jax, pytorch = os.path.join(folder, "jax"), os.path.join(folder, "torch")
            path = os.path.join(ROOT, "tests", "hlo", "pairs", name + "-data-2", "whole.hlo")
            hlo.run(options(file=path, whole=None, out=jax, inputs=["x"]))
            weights = read_safetensors(os.path.join(jax, "weights.safetensors"))
            x = read_safetensors(os.path.join(jax, "inputs.safetensors"))["x"]
            short = {re.sub(r".*'(\w+)'\]", r"\1", n): t for n, t in weights.items()}
            capture(build(short).eval(), {"x": x}, pytorch)
            done = isomer("compare", jax, pytorch)
            self.assertEqual(done.returncode, want, done.stdout[-2000:] + done.stderr)

    def test_gpt(self):
        self.compare("gpt", hlo_blocks.Gpt, 0)

    def test_llama(self):
        self.compare("llama", hlo_blocks.Llama, 0)

    def test_another_epsilon(self):
        self.compare("llama", lambda w: hlo_blocks.Llama(w, 1e-4), 1)


class Literals(unittest.TestCase):
    def test_simplest_real(self):
        for said, real, name in (
            ("0.797884583", math.sqrt(2 / math.pi), "sqrt(2/pi)"),
            ("-0.0208333340", -1 / 48, "-1/48"),
            ("0.353553385", 8**-0.5, "sqrt(1/8)"),
            ("0.707106769", 0.5**0.5, "sqrt(1/2)"),
            ("0.044715", 0.044715, None),
            ("1e-06", 1e-6, None),
            ("0.547213912", 0.547213912, None),
            ("inf", math.inf, None),
        ):
            with self.subTest(said=said):
                self.assertEqual(literals.read(said), (real, name))


class Ranks(unittest.TestCase):
    """Each rank of a partitioned module gives JAX's values, for each collective and grouping."""

    def test_collectives(self):
        values = read_safetensors(os.path.join(DATA, "ranks.safetensors"))
        joined = Joined()
        with tempfile.TemporaryDirectory() as folder:
            given, at = os.path.join(folder, "given.safetensors"), os.path.join(folder, "all")
            for name in sorted({k.split("/")[0] for k in values}):
                with self.subTest(name=name):
                    module = text.read_file(os.path.join(DATA, name + ".ranks.hlo"))
                    leaves = enumerate(hlo.leaf_names(module))
                    write_safetensors(given, {n: values["%s/%d" % (name, k)] for k, n in leaves})
                    graph, weights, inputs, _ = hlo.lower(module, None, options(values=given))
                    results = {o["name"]: values[name + "/" + o["name"]] for o in graph["outputs"]}
                    self.assertGreaterEqual(len(results), 8)
                    joined.add(name + "_", graph, dict(weights, **inputs), results)
            joined.write(at)
            done = isomer("run", "--propagate", at)
            self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr)


class Command(unittest.TestCase):
    def run_command(self, *words):
        return commands.run(["hlo", *words])

    def test_written_and_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            out, bad = os.path.join(folder, "out"), os.path.join(folder, "bad.hlo")
            pair = os.path.join(ROOT, "tests", "hlo", "pairs", "gpt-both-4")
            whole, ranks = os.path.join(pair, "whole.hlo"), os.path.join(pair, "ranks.hlo")
            done = self.run_command(ranks, "--whole", whole, "-o", out)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(out, "relations.txt"), encoding="utf-8") as f:
                lines = f.read()
            self.assertIn("leaf x = cat([rank0.x, rank2.x], 0)\n", lines)
            self.assertIn("output output = cat([output_rank1, output_rank3], 0)\n", lines)
            with open(bad, "w", encoding="utf-8") as f:
                f.write(HEAD + "  ROOT y = f32[4,6] fft(x)\n}\n")
            refusals = (bad, "-o", out), (ranks, "--range", "z", "0", "3", "-o", out)
            for words in (*refusals, (os.path.join(folder, "none.hlo"), "-o", out)):
                done = self.run_command(*words)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertTrue(done.stderr.startswith("isomer-capture: "), done.stderr)
