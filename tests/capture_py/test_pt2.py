"""Archives of torch.export.save: equal to their modules' own captures, in all three generations;
damaged and hostile ones are refused with one line."""

import hashlib
import io
import json
import os
import pickle
import shutil
import struct
import subprocess
import tempfile
import unittest
import warnings
import zipfile

try:
    import torch
    from torch import nn
except ImportError:
    torch = None

from isomer_capture import capture

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OLD = os.path.join(ROOT, "tests", "pt2", "torch-2.6")


def isomer(*words, **options):
    return subprocess.run(
        [os.environ["ISOMER"], *words], capture_output=True, text=True, timeout=120, **options
    )


def entries(path):
    """name to bytes, of a zip file."""
    with zipfile.ZipFile(path) as z:
        return {n: z.read(n) for n in z.namelist()}


def write(path, files, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as z:
        for name, data in files.items():
            z.writestr(name, data)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def at(self, name):
        return os.path.join(self.folder.name, name)

    def equivalent(self, left, right, *options):
        done = isomer("compare", left, right, *options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("EQUIVALENT", done.stdout)

    def refused(self, path, words, *options):
        """One line, exit status 2."""
        done = isomer("show", path, *options)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("isomer: "), done.stderr)
        for w in words if isinstance(words, tuple) else (words,):
            self.assertIn(w, done.stderr)


class Generations(Case):
    """The archive of PyTorch 2.6 is committed, with the capture of the same module made there. That
    of 2.8 is made from it: the same files under other names."""

    def second(self, path, **changed):
        files = entries(os.path.join(OLD, "block.pt2"))
        names = {
            "serialized_exported_program.json": "models/model.json",
            "serialized_state_dict.pt": "data/weights/model.pt",
            "serialized_constants.pt": "data/constants/model.pt",
            "serialized_example_inputs.pt": "data/sample_inputs/model.pt",
        }
        out = {"block/" + new: files[old] for old, new in names.items()}
        out.update({"block/archive_format": b"pt2", "block/byteorder": b"little"})
        out.update(changed)
        write(path, out)

    def test_first(self):
        self.equivalent(os.path.join(OLD, "block.pt2"), os.path.join(OLD, "capture"))

    def test_second(self):
        self.second(self.at("block.pt2"))
        self.equivalent(self.at("block.pt2"), os.path.join(OLD, "capture"))

    def test_second_is_checked(self):
        self.second(self.at("a.pt2"), **{"block/archive_format": b"aoti"})
        self.refused(self.at("a.pt2"), "archive_format")
        self.second(self.at("a.pt2"), **{"block/models/other.json": b"{}"})
        self.refused(self.at("a.pt2"), "several models")
        self.second(self.at("a.pt2"), **{"block/byteorder": b"big"})
        self.refused(self.at("a.pt2"), "little-endian")

    def test_deflated(self):
        write(self.at("a.pt2"), entries(os.path.join(OLD, "block.pt2")), zipfile.ZIP_DEFLATED)
        self.equivalent(self.at("a.pt2"), os.path.join(OLD, "capture"))

    def test_commands(self):
        done = isomer("run", os.path.join(OLD, "block.pt2"), "--float64")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("logits", done.stdout)
        done = isomer("show", os.path.join(OLD, "block.pt2"))
        self.assertIn(
            "embed", done.stdout + isomer("show", "--dot", os.path.join(OLD, "block.pt2")).stdout
        )

    def test_other_weights_differ(self):
        files = entries(os.path.join(OLD, "block.pt2"))
        inner = self.at("inner.zip")
        with open(inner, "wb") as f:
            f.write(files["serialized_state_dict.pt"])
        parts = entries(inner)
        largest = max((n for n in parts if "/data/" in n), key=lambda n: len(parts[n]))
        parts[largest] = parts[largest][:-4] + struct.pack(
            "<f", 1.0 + struct.unpack("<f", parts[largest][-4:])[0]
        )
        buffer = io.BytesIO()
        write(buffer, parts)
        files["serialized_state_dict.pt"] = buffer.getvalue()
        write(self.at("a.pt2"), files)
        done = isomer("compare", self.at("a.pt2"), os.path.join(OLD, "capture"))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)


class Pickled:
    """Unpickled by Python, this would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


class Hostile(Case):
    def files(self):
        return entries(os.path.join(OLD, "block.pt2"))

    def changed(self, **changes):
        files = self.files()
        for name, data in changes.items():
            files[
                {
                    "graph": "serialized_exported_program.json",
                    "weights": "serialized_state_dict.pt",
                }.get(name, name)
            ] = data
        write(self.at("a.pt2"), files)
        return self.at("a.pt2")

    def saved(self, data, **more):
        """A file of torch.save around a pickle."""
        out = io.BytesIO()
        write(
            out,
            dict(
                {
                    "archive/data.pkl": data,
                    "archive/byteorder": b"little",
                    "archive/data/0": bytes(64),
                },
                **more,
            ),
        )
        return out.getvalue()

    def graph(self, edit):
        # As Python reads it, infinities and all.
        top = json.loads(self.files()["serialized_exported_program.json"])
        edit(top["graph_module"]["graph"], top)
        return self.changed(graph=json.dumps(top).encode())

    def test_pickles(self):
        marker = self.at("written")
        for what in (
            Pickled(marker),
            {"embed.weight": Pickled(marker)},
            {"embed.weight": os.system},
            {"embed.weight": eval},
        ):
            self.refused(
                self.changed(weights=self.saved(pickle.dumps(what, 2))), "nothing but tensors"
            )
        self.assertFalse(os.path.exists(marker))
        for data in (
            b"\x80\x02cos\nsystem\n(X\x02\x00\x00\x00lstR.",
            b"\x80\x02(X\x02\x00\x00\x00lsios\nsystem\n.",
            b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
            b"cbuiltins\neval\n.",
            b"\x80\x02\x82\x01.",
            b"\x80\x02P0\n.",
        ):
            self.refused(self.changed(weights=self.saved(data)), "nothing but tensors")
        for data in (
            b"",
            b"\x80",
            b"\x80\x02",
            b"\x80\x02.",
            b"\x80\x02(.",
            b"\x80\x02t.",
            b"\x80\x02}(u.",
            b"\x80\x02(u.",
            b"\x80\x02s.",
            b"\x80\x02h\x07.",
            b"\x80\x02Q.",
            b"\x80\x02R.",
            b"\x80\x02q\x00.",
            b"\x80\x02X\xff\xff\xff\x7fa.",
            b"\x80\x02K\x01K\x02.",
            b"\x80\x02}r\xff\xff\xff\xff.",
            b"\x80\x09}.",
            b"\x80\x02K\x01.",
            b"\x80\x02}K\x01K\x02s.",
            b"\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s.",
        ):
            self.refused(self.changed(weights=self.saved(data)), "")

    def test_cyclic_pickle(self):
        loop = {}
        loop["embed.weight"] = loop
        self.refused(self.changed(weights=self.saved(pickle.dumps(loop, 2))), "no tensor")
        nest = ()
        for _ in range(60):
            nest = (nest, nest)
        done = self.changed(**{"serialized_example_inputs.pt": self.saved(pickle.dumps(nest, 2))})
        self.refused(done, "example input")

    def test_absurd_tensors(self):
        def tensor(key="0", numel=16, offset=0, size=(4, 4), stride=(4, 1), kind=b"FloatStorage"):
            def packed(v):
                return pickle.dumps(v, 2)[2:-1]

            return (
                (
                    b"\x80\x02}X\x0b\x00\x00\x00head.weightctorch._utils\n_rebuild_tensor_v2\n"
                    b"((X\x07\x00\x00\x00storagectorch\n"
                )
                + kind
                + b"\n"
                + packed(key)
                + packed("cpu")
                + packed(numel)
                + b"tQ"
                + packed(offset)
                + packed(size)
                + packed(stride)
                + b"\x89ccollections\nOrderedDict\n)RtRs."
            )

        for more, words in (
            ({"size": (1 << 40, 4)}, ""),
            ({"offset": 100}, "reaches to byte"),
            ({"offset": -1}, "negative"),
            ({"stride": (1 << 62, 1 << 62)}, ""),
            ({"stride": (-4, 1)}, "negative"),
            ({"size": (1 << 31, 1 << 31), "stride": (0, 0)}, ""),
            ({"size": (-1, 4)}, "negative"),
            ({"size": (1 << 18, 1 << 18), "stride": (0, 0)}, "memory"),
            ({"stride": (4,)}, "malformed"),
            ({"key": "../0"}, "no entry"),
            ({"kind": b"QInt8Storage"}, "nothing but tensors"),
            ({}, "weight"),
        ):
            self.refused(self.changed(weights=self.saved(tensor(**more))), words)

    def test_graphs(self):
        def later(g, top):
            g["nodes"][0], g["nodes"][-1] = g["nodes"][-1], g["nodes"][0]

        def itself(g, top):
            g["nodes"][2]["inputs"][0]["arg"] = {
                "as_tensor": {"name": g["nodes"][2]["outputs"][0]["as_tensor"]["name"]}
            }

        for edit, words in (
            (later, "nothing before it"),
            (itself, "nothing before it"),
            (lambda g, t: t["schema_version"].update(major=9), "version 9"),
            (lambda g, t: g["nodes"][3].update(target="torch.ops.aten.set_.source_Tensor"), "node"),
            (
                lambda g, t: g["nodes"][3].update(target="torch.ops.mine.custom.default"),
                "writes to its arguments",
            ),
            (lambda g, t: g["nodes"][3].update(target="torch.ops.higher_order.cond"), "cond"),
            (lambda g, t: g["nodes"][3].update(target="os.system"), "os.system"),
            (lambda g, t: g.update(nodes=7), "no nodes"),
            (lambda g, t: g["tensor_values"].clear(), "tensor_values"),
            (
                lambda g, t: next(iter(g["tensor_values"].values())).update(
                    sizes=[{"as_int": 1 << 62}] * 2
                ),
                "",
            ),
            (lambda g, t: t.update(graph_module={}), ""),
        ):
            self.refused(self.graph(edit), words)
        self.refused(self.changed(graph=b"{" * 5000), "")
        self.refused(self.changed(graph=b"[" * 100000), "")

    def test_names(self):
        for name in ("../evil", "a/../../evil", "/etc/evil", "a\\..\\evil"):
            self.refused(self.changed(**{name: b"x"}), "leads out of")
        files = self.files()
        with zipfile.ZipFile(self.at("b.pt2"), "w") as z:
            for name, data in files.items():
                z.writestr(name, data)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # zipfile says that it is there twice
                z.writestr("version", b"8.2")
        self.refused(self.at("b.pt2"), "twice")

    def test_bombs(self):
        """A gigabyte of zeros in a megabyte; many entries over one place; a directory that lies."""
        files = self.files()
        with zipfile.ZipFile(self.at("b.pt2"), "w", zipfile.ZIP_DEFLATED) as z:
            for name, data in files.items():
                if name == "serialized_exported_program.json":
                    with z.open(name, "w", force_zip64=True) as f:
                        for _ in range(1300):
                            f.write(bytes(1 << 20))
                else:
                    z.writestr(name, data)
        self.refused(self.at("b.pt2"), "takes more memory")
        whole = open(os.path.join(OLD, "block.pt2"), "rb").read()
        central = whole.rindex(b"PK\x01\x02")
        end = whole.rindex(b"PK\x05\x06")
        for at in (central + 20, central + 24):  # packed and unpacked size of the last entry
            with open(self.at("c.pt2"), "wb") as f:
                f.write(whole[:at] + struct.pack("<I", 0x7FFFFFFF) + whole[at + 4 :])
            self.refused(self.at("c.pt2"), "")
        with open(self.at("d.pt2"), "wb") as f:
            f.write(whole[: end + 8] + struct.pack("<HH", 60000, 60000) + whole[end + 12 :])
        self.refused(self.at("d.pt2"), "")
        first = whole.index(b"PK\x01\x02")
        where = struct.unpack("<I", whole[first + 42 : first + 46])[0]
        second = whole.index(b"PK\x01\x02", first + 4)
        with open(self.at("e.pt2"), "wb") as f:  # two entries of one place
            f.write(whole[: second + 42] + struct.pack("<I", where) + whole[second + 46 :])
        self.refused(self.at("e.pt2"), "")

    def test_crc(self):
        whole = bytearray(open(os.path.join(OLD, "block.pt2"), "rb").read())
        for what in (b"as_tensor", b"data.pkl"):
            at = whole.index(what)
            damaged = bytearray(whole)
            damaged[at] ^= 1
            with open(self.at("a.pt2"), "wb") as f:
                f.write(damaged)
            self.refused(self.at("a.pt2"), ("CRC", "damaged"))

    def test_truncated_and_flipped(self):
        """Every cut is refused; every flipped bit is refused, or changes nothing that is read."""
        whole = open(os.path.join(OLD, "block.pt2"), "rb").read()
        good = isomer("show", os.path.join(OLD, "block.pt2")).stdout.replace(OLD, "")
        for k in range(20):
            with open(self.at("a.pt2"), "wb") as f:
                f.write(whole[: len(whole) * k // 20])
            self.refused(self.at("a.pt2"), "")
        for k in range(60):
            at = (k * 7919 + 13) % len(whole) if k < 30 else len(whole) - 1 - (k - 30) * 22
            damaged = bytearray(whole)
            damaged[at] ^= 1 << (k % 8)
            with open(self.at("block.pt2"), "wb") as f:
                f.write(damaged)
            done = isomer("show", self.at("block.pt2"))
            self.assertIn(done.returncode, (0, 2), done.stderr)
            if done.returncode == 0:
                self.assertEqual(done.stdout.replace(self.folder.name, ""), good)
            else:
                self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_no_archives(self):
        for data in (b"", b"PK", b"PK\x05\x06" + bytes(18), b"hello, world" * 20):
            with open(self.at("a.pt2"), "wb") as f:
                f.write(data)
            self.refused(self.at("a.pt2"), "a.pt2")
        write(self.at("a.pt2"), {"hello": b"world"})
        self.refused(self.at("a.pt2"), "no archive of torch.export.save")


class Shards(Case):
    """A checkpoint's safetensors as the weights of a capture."""

    def split(self, **changed):
        from isomer_capture.files import write_safetensors

        shutil.copytree(os.path.join(OLD, "capture"), self.at("c"))
        with open(self.at("c/weights.safetensors"), "rb") as f:
            n = struct.unpack("<Q", f.read(8))[0]
            header, data = json.loads(f.read(n)), f.read()
        kinds = {
            "F32": torch.float32,
            "BF16": torch.bfloat16,
            "I64": torch.int64,
            "BOOL": torch.bool,
            "F64": torch.float64,
        }
        tensors = {
            name: torch.frombuffer(
                bytearray(data[e["data_offsets"][0] : e["data_offsets"][1]]),
                dtype=kinds[e["dtype"]],
            ).reshape(e["shape"])
            for name, e in header.items()
            if name != "__metadata__"
        }
        parts = {"model-00001-of-00002.safetensors": {}, "model-00002-of-00002.safetensors": {}}
        rest, where = {}, {}
        for k, (name, t) in enumerate(sorted(tensors.items())):
            file = sorted(parts)[k % 2]
            if "weight" in name or "bias" in name:
                parts[file][name] = t
                where[name] = file
            else:
                rest[name] = t
        for file, some in parts.items():
            write_safetensors(self.at("c/" + file), some)
        write_safetensors(self.at("c/weights.safetensors"), rest)
        with open(self.at("c/model.safetensors.index.json"), "w") as f:
            json.dump({"metadata": {}, "weight_map": dict(where, **changed)}, f)

    @unittest.skipIf(torch is None, "PyTorch is not installed")
    def test_shards(self):
        self.split()
        self.equivalent(self.at("c"), os.path.join(OLD, "capture"))
        os.unlink(self.at("c/model-00002-of-00002.safetensors"))
        self.refused(self.at("c"), "model-00002-of-00002.safetensors")
        shutil.rmtree(self.at("c"))
        self.split(**{"norm.weight": "../secret.safetensors"})
        self.refused(self.at("c"), "no plain file name")


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Newest(Case):
    """Archives that the installed PyTorch writes are compared with the module's own capture."""

    def both(self, module, inputs, dynamic=None, decompose=False):
        torch.manual_seed(0)
        module = module.eval()
        exported = torch.export.export(module, tuple(inputs), dynamic_shapes=dynamic)
        if decompose:
            exported = exported.run_decompositions({})
        torch.export.save(exported, self.at("m.pt2"))
        capture(module, tuple(inputs), self.at("m"))
        self.equivalent(self.at("m.pt2"), self.at("m"))

    class Linear(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6, bias=False)
            self.tied = nn.Embedding(9, 6)
            self.head = nn.Linear(6, 9, bias=False)
            self.head.weight = self.tied.weight
            self.register_buffer("turned", torch.randn(6, 6).t())
            self.register_buffer("table", torch.randn(6).bfloat16(), persistent=False)

        def forward(self, ids, x):
            h = self.tied(ids) + self.a(x) * self.table.float()
            with torch.no_grad():
                h = torch.nn.functional.gelu(h, approximate="tanh")
            return self.head(self.b(h) @ self.turned), (h.split(2, -1)[1], h.topk(3)[0])

    def test_module(self):
        self.both(self.Linear(), (torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.randn(2, 3, 6)))

    def test_decomposed(self):
        self.both(
            self.Linear(),
            (torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.randn(2, 3, 6)),
            decompose=True,
        )

    def test_dynamic(self):
        batch = torch.export.Dim("batch", min=2, max=64)
        self.both(
            self.Linear(),
            (torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.randn(2, 3, 6)),
            {"ids": {0: batch}, "x": {0: batch}},
        )

    def test_reading_sizes(self):
        class Sizes(nn.Module):
            def forward(self, x):
                n = x.shape[0] * x.shape[1] + 1
                return (
                    x.reshape(x.shape[0] * x.shape[1], -1).sum(0) / n
                    + torch.arange(x.shape[2]) * x.shape[0]
                )

        batch = torch.export.Dim("batch", min=2, max=64)
        self.both(Sizes(), (torch.randn(5, 3, 4),), {"x": {0: batch}})

    def in_place(self, body):
        class M(nn.Module):
            def forward(self, x):
                return body(x)

        self.both(M(), (torch.randn(4, 6),))

    def test_in_place(self):
        """Writes through views of every kind that has an inverse."""

        def slices(x):
            y = x.clone()
            y[1:3, ::2] = 7.0
            y[:, 1].mul_(3)
            y[-1] += x[0]
            return y

        def views(x):
            y = x * 2
            y.view(2, 2, 6).transpose(0, 1)[0].add_(1)
            y.t()[2].zero_()
            y.permute(1, 0).unsqueeze(0).squeeze(0).narrow(0, 1, 2).sub_(x.t()[1:3])
            y.diagonal().fill_(5)
            return y

        def parts(x):
            y = x + 0.0
            a, b, c = y.split([1, 2, 3], -1)
            b.copy_(a.expand(4, 2))
            d, e = y.chunk(2, 0)
            e.add_(d)
            for k, row in enumerate(y.unbind(0)):
                row.mul_(k + 1)
            return y, c * 2

        def reads(x):
            y = x.clone()
            before = y[0] * 1
            row = y[0]
            y.add_(1)
            return row + before, y.contiguous().view(-1).relu_().reshape(4, 6), y

        def masks(x):
            m = torch.zeros(4, 4)
            m.masked_fill_(torch.ones(4, 4, dtype=torch.bool).tril().logical_not_(), float("-inf"))
            return torch.softmax(x @ x.t() + m, -1)

        def casts(x):
            y = x.half()
            y.add_(x)
            z = torch.arange(6)
            z.add_(2).mul_(3)
            return y.float(), z * x

        for body in (slices, views, parts, reads, masks, casts):
            with self.subTest(body.__name__):
                self.in_place(body)

    def archive(self, body, x=None):
        class M(nn.Module):
            def forward(self, x):
                return body(x)

        torch.export.save(
            torch.export.export(M().eval(), (torch.randn(4, 6) if x is None else x,)),
            self.at("r.pt2"),
        )
        return self.at("r.pt2")

    def test_refused_writes(self):
        def windows(x):
            y = x.clone()
            y.unfold(0, 2, 1).add_(1)
            return y

        for body, words in ((windows, "cannot be turned into a function"),):
            self.refused(self.archive(body), words)

    def counting(self, by, says):
        """An archive whose program writes to a buffer and returns what is no tensor."""

        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("seen", torch.zeros(4, 6))

            def forward(self, x):
                y = x * 2
                self.seen.add_(by)
                return (y,) + says

        path = self.at("%d.pt2" % len(os.listdir(self.at("."))))
        torch.export.save(torch.export.export(M().eval(), (torch.randn(4, 6),)), path)
        return path

    def assumed(self, report):
        with open(report, encoding="utf-8") as f:
            return [a["text"] for a in json.load(f)["assumptions"]]

    def test_left_out(self):
        """What a program writes to is told: no comparison looks at it. Outputs that are no tensors
        are the same on both sides, or it is no equivalence."""
        sides = [self.counting(by, (7, None, "a")) for by in (1, 2)]
        report, certificate = self.at("report.json"), self.at("c.json")
        self.equivalent(*sides, "--certificate", certificate, "--json", report)
        check = isomer("check", certificate, *sides, "--json", self.at("check.json"))
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        for path in (report, self.at("check.json")):
            said = [t for t in self.assumed(path) if t.startswith("left out")]
            for side in ("left", "right"):
                words = "left out of the comparison: on the %s seen is written to" % side
                self.assertIn(words, said)
            self.assertEqual(len(said), 2, said)

    def test_no_tensors(self):
        for a, b, shown in (
            ((1,), (2,), ("1", "2")),
            ((1.5,), (1.25,), ("1.5", "1.25")),
            ((True,), (False,), ("true", "false")),
            (("a",), ("b",), ('"a"', '"b"')),
            ((None,), (3,), ("null", "3")),
        ):
            with self.subTest(a=a, b=b):
                sides = [self.counting(1, a), self.counting(1, b)]
                right = self.counting(1, a)
                p = isomer("compare", *sides)
                self.assertEqual(p.returncode, 3, p.stdout + p.stderr)
                words = "output output_1 is no tensor: on the left it is %s, and on the right %s"
                self.assertIn(words % shown, p.stdout)
                certificate = self.at("c.json")
                self.equivalent(sides[0], right, "--certificate", certificate)
                with open(certificate, encoding="utf-8") as f:
                    forged = json.load(f)
                with open(sides[1], "rb") as f:
                    forged["right"]["files"]["archive"] = hashlib.sha256(f.read()).hexdigest()
                with open(certificate, "w", encoding="utf-8") as f:
                    json.dump(forged, f)
                p = isomer("check", certificate, *sides)
                self.assertEqual(p.returncode, 1, p.stdout + p.stderr)
                self.assertIn("is no tensor", p.stdout + p.stderr)

    def test_what_captures_leave_out(self):
        def sides(left, right, names=(None, None)):
            at = []
            for side, f, n in zip(("l", "r"), (left, right), names):
                at.append(self.at("%s%d" % (side, len(os.listdir(self.at(""))))))
                module = nn.Module()
                module.forward = f
                capture(module.eval(), (torch.randn(2, 3),), at[-1], output_names=n)
            return at

        nan = float("nan")
        cases = (
            (3, lambda x: (x * 2, None), lambda x: (x + x, 3)),
            (0, lambda x: (x * 2, None), lambda x: (x + x,)),
            (3, lambda x: (x * 2, nan), lambda x: (x + x, "nan")),
            (0, lambda x: (x * 2, nan), lambda x: (x + x, nan)),
            (0, lambda x: (x * 2, 3), lambda x: {"y": x + x, "n": 3}),
            (3, lambda x: (x * 2, 3), lambda x: {"y": x + x, "n": 4}),
        )
        for rc, left, right in cases:
            p = isomer("compare", *sides(left, right))
            self.assertEqual(p.returncode, rc, p.stdout + p.stderr)
        three, moved = lambda x: (x * 2, x * 3, x * 4), lambda x: (x * 4, x + x, x + x + x)
        for rc, names in ((0, "cde"), (0, "cab"), (1, "pqr"), (1, "bde")):
            p = isomer("compare", *sides(three, moved, (list("abc"), list(names))))
            self.assertEqual(p.returncode, rc, p.stdout + p.stderr)

    def test_numbers_from_tensors(self):
        def reads(x):
            n = x[0, 0].item()
            return x * n

        self.refused(self.archive(reads), "depends on data")

    def test_branches(self):
        def branch(x):
            return torch.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, (x,))

        self.refused(self.archive(branch), "cannot hold")

    def test_inputs(self):
        from isomer_capture.files import write_safetensors

        module, x = nn.Linear(6, 3).eval(), torch.randn(4, 6)
        exported = torch.export.export(module, (x,))
        exported._example_inputs = None  # 2.6 checks what the property is given
        torch.export.save(exported, self.at("m.pt2"))
        self.refused(self.at("m.pt2"), "--inputs")
        write_safetensors(self.at("x.safetensors"), {"input": x})
        write_safetensors(self.at("y.safetensors"), {"input": torch.randn(4, 6)})
        capture(module, (x,), self.at("m"))
        self.equivalent(self.at("m.pt2"), self.at("m"), "--inputs", self.at("x.safetensors"))
        done = isomer(
            "show",
            self.at("m.pt2"),
            "--inputs",
            self.at("x.safetensors"),
            "--inputs",
            self.at("y.safetensors"),
        )
        self.assertIn("input sets   2", done.stdout, done.stderr)
        write_safetensors(self.at("z.safetensors"), {"input": torch.randn(3, 6)})
        self.refused(
            self.at("m.pt2"), ("z.safetensors", "[3, 6]"), "--inputs", self.at("z.safetensors")
        )
        self.refused(self.at("m"), "--inputs", "--inputs", self.at("x.safetensors"))

    def test_a_bug_is_found(self):
        module, x = (
            self.Linear().eval(),
            (torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.randn(2, 3, 6)),
        )
        capture(module, x, self.at("m"))
        torch.nn.functional_gelu = torch.nn.functional.gelu
        try:
            torch.nn.functional.gelu = lambda h, approximate: torch.nn.functional_gelu(h)
            torch.export.save(torch.export.export(module, x), self.at("m.pt2"))
        finally:
            torch.nn.functional.gelu = torch.nn.functional_gelu
            del torch.nn.functional_gelu
        done = isomer("compare", self.at("m.pt2"), self.at("m"))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("gelu", done.stdout)

    def test_memory_in_another_order_is_not_read(self):
        """Values are kept row by row: what reads another order would read other elements."""

        class Read(nn.Module):
            def forward(self, x):
                return torch.as_strided(x, (24,), (1,))

        class Whole(nn.Module):
            def forward(self, x):
                return x.reshape(-1)

        rows, columns, whole = torch.randn(2, 3, 4), torch.randn(2, 4, 3), torch.randn(4, 3, 4)
        for name, x in ("rows", rows), ("columns", columns.mT), ("part", whole[2:]):
            for what, module in ("read", Read()), ("whole", Whole()):
                at = self.at("%s-%s" % (name, what))
                torch.export.save(torch.export.export(module, (x,)), at + ".pt2")
                capture(module, (x,), at)
            for end in "", ".pt2":
                sides = [self.at("%s-%s%s" % (name, what, end)) for what in ("read", "whole")]
                done = isomer("compare", *sides)
                self.assertEqual(done.returncode, 0 if name == "rows" else 2, done.stdout)
                if name != "rows":
                    self.assertIn("reads memory whose order is not in the capture", done.stderr)


if __name__ == "__main__":
    unittest.main()
