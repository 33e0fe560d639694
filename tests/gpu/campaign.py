#!/usr/bin/env python3
"""The guarantees of `--device cuda`, checked against the CPU; run.sh builds and calls this.

    tests/gpu/campaign.py --isomer build-gpu/isomer --out DIR [--dry] [--quick]

Pairs of captures, small pairs and rule files have the verdict, the evidence and the rules that they
have on the CPU; a user's kernel in its own dtype is told from a wrong one; memory that runs out
ends `undecided`. DIR/gpu.json has all figures, DIR/gpu.md a table for docs/gpu.md. The last line is
`N passed, N failed`."""

import argparse
import contextlib
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "pairs"))
import captures  # noqa: E402

KEPT = ("name", "lhs", "rhs", "conditions", "status", "scope")
# On the CPU in well under a minute, and with many rules that are only tested.
RULE_FILES = ["operators", "traps", "identities"]
CALLS = (1, 7, 60, 240, 500)  # of a dry device, before its memory is said to run out


class Campaign:
    def __init__(self, options):
        self.o, self.passed, self.failed = options, 0, 0
        self.figures = {"dry": options.dry, "steps": {}}
        self.device = {"ISOMER_DRY_DEVICE": "1"} if options.dry else {}

    def note(self, good, what):
        self.passed, self.failed = self.passed + good, self.failed + (not good)
        if not good:
            print("FAILED %s" % what, flush=True)

    def run(self, words, device, **environment):
        """(status, stdout and stderr, seconds)"""
        env = {**os.environ, **(self.device if device == "cuda" else {}), **environment}
        start = time.monotonic()
        p = subprocess.run(
            [self.o.isomer, *words, "--device", device],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=env,
            timeout=300,
        )
        return p.returncode, p.stdout.decode("utf-8", "replace"), time.monotonic() - start

    def several(self, f, items):
        with ThreadPoolExecutor(self.o.jobs) as pool:
            return list(pool.map(f, items))

    def step(self, name, f):
        start = time.monotonic()
        before = self.passed, self.failed
        said = f() or {}
        said.update(
            passed=self.passed - before[0],
            failed=self.failed - before[1],
            seconds=round(time.monotonic() - start, 1),
        )
        self.figures["steps"][name] = said
        print(
            "gpu: %-9s %4d passed, %d failed, %.1f s"
            % (name, said["passed"], said["failed"], said["seconds"]),
            flush=True,
        )

    # ---- pairs of captures ----

    def report(self, words, device):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.json")
            status, text, seconds = self.run([*words, "--json", path], device)
            last = text.strip().rsplit("\n", 1)[-1]
            if not os.path.exists(path):
                return (status, last), seconds
            with open(path, encoding="utf-8") as f:
                r = json.load(f)
        rules = sorted(tuple(str(rule[k]) for k in KEPT) for rule in r["rules"])
        places = [
            (d["left"] and d["left"]["id"], d["right"] and d["right"]["id"])
            for d in r["divergences"]
        ]
        return (status, r["verdict"], r["evidence"], rules, places), seconds

    def pairs(self):
        models = os.path.join(ROOT, "models")
        work = [(os.path.join(models, l), os.path.join(models, r)) for l, r, _, _ in captures.PAIRS]
        variants = os.path.join(models, "variants")
        work += [
            (os.path.join(variants, l), os.path.join(variants, r))
            for l, r, _ in captures.families(variants)
        ]
        if self.o.quick:
            work = [
                w
                for w in work
                if "gpt2-2l/hf-sdpa" in w[0] and ("vllm" == os.path.basename(w[1]) or "bug" in w[1])
            ][:2]
        both = self.several(
            lambda w: [self.report(["compare", *w], d) for d in ("cpu", "cuda")], work
        )
        for w, ((cpu, _), (gpu, _)) in zip(work, both):
            self.note(cpu == gpu, "%s %s: on the CPU %s, on the device %s" % (*w, cpu[:3], gpu[:3]))
        return {"cpu": sum(b[0][1] for b in both), "gpu": sum(b[1][1] for b in both)}

    def small(self):
        """tests/pairs, whose verdicts are known."""
        words = [
            sys.executable,
            os.path.join(ROOT, "tests", "pairs", "run.py"),
            "--isomer",
            self.o.isomer,
            "--device",
            "cuda",
            "--jobs",
            str(self.o.jobs),
            *(["--only", "softmax"] if self.o.quick else []),
        ]
        p = subprocess.run(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(os.environ, **self.device),
        )
        text = p.stdout.decode("utf-8", "replace")
        found = re.search(r"^(\d+) passed, (\d+) failed$", text, re.M)
        self.note(bool(found), "tests/pairs/run.py: %s" % text[-300:])
        if found:
            self.passed, self.failed = (
                self.passed + int(found.group(1)),
                self.failed + int(found.group(2)),
            )
            print("".join(l + "\n" for l in text.splitlines() if l.startswith("FAILED")), end="")

    # ---- rules ----

    def rules(self):
        seconds = {"cpu": 0.0, "gpu": 0.0}
        names = ["operators"] if self.o.quick else RULE_FILES

        def check(name):
            said = []
            for device in ("cpu", "cuda"):
                path = os.path.join(ROOT, "tests", "rules", name + ".rules")
                with tempfile.TemporaryDirectory() as folder:
                    report = os.path.join(folder, "r.json")
                    _, text, took = self.run(["rules", "check", path, "--json", report], device)
                    with contextlib.suppress(OSError), open(report, encoding="utf-8") as f:
                        text = {r["name"]: (r["status"], r["scope"]) for r in json.load(f)["rules"]}
                said.append((text, took))
            return said

        for name, ((cpu, a), (gpu, b)) in zip(names, self.several(check, names)):
            seconds["cpu"], seconds["gpu"] = seconds["cpu"] + a, seconds["gpu"] + b
            self.note(
                isinstance(cpu, dict) and isinstance(gpu, dict),
                "%s.rules: %s / %s" % (name, str(cpu)[-200:], str(gpu)[-200:]),
            )
            for rule in cpu if isinstance(cpu, dict) and isinstance(gpu, dict) else ():
                self.note(
                    cpu[rule] == gpu.get(rule),
                    "%s: %s on the CPU, %s on the device" % (rule, cpu[rule], gpu.get(rule)),
                )
        return seconds

    # ---- a user's kernel ----

    def kernel(self):
        with tempfile.TemporaryDirectory() as folder:
            plain, wrong = Norm(folder, "plain", 1e-5, False), Norm(folder, "wrong", 1e-6, False)
            kernel = Norm(folder, "kernel", 1e-5, True)
            for dtype in (
                ("float32", "float16") if self.o.quick else ("float32", "bfloat16", "float16")
            ):
                helper = "%s -m isomer_capture.helper --import kernels --dtype %s --device %s" % (
                    sys.executable,
                    dtype,
                    "cpu" if self.o.dry else "cuda",
                )
                path = os.pathsep.join([os.path.join(ROOT, "capture"), HERE])
                for left, right, want in (
                    (plain, kernel, 0),
                    (kernel, plain, 0),
                    (wrong, kernel, None),
                )[:: 2 if self.o.quick else 1]:
                    status, text, _ = self.run(
                        ["compare", left.path, right.path, "--helper", helper],
                        "cuda",
                        PYTHONPATH=path,
                    )
                    last = text.strip().rsplit("\n", 1)[-1]
                    # In few bits a wrong eps may be no difference that is sure; it is never equal.
                    good = (
                        status in (1, 3)
                        if want is None
                        else status == want and "[tested]" in last and "in few bits" in text
                    )
                    self.note(
                        good,
                        "kernel in %s, %s against %s: status %d, %s"
                        % (dtype, left.name, right.name, status, last),
                    )

    # ---- memory that runs out ----

    def memory(self):
        if self.o.dry:
            for calls in CALLS[1:3] if self.o.quick else CALLS:
                words = [
                    os.path.join(ROOT, "models", "gpt2-2l", s)
                    for s in ("hf-sdpa", "vllm-bug-posoff")
                ]
                status, text, _ = self.run(
                    ["compare", *words], "cuda", ISOMER_DRY_DEVICE=str(calls + 1)
                )
                self.note(
                    status == 3 and "memory ran out" in text.rsplit("isomer: ", 1)[-1],
                    "memory that runs out at call %d: status %d, %s" % (calls, status, text[-200:]),
                )
            return
        with tempfile.TemporaryDirectory() as folder, occupied(1500 << 20):
            sides = [
                Squares(folder, name, times).path for name, times in (("left", 1), ("right", 2))
            ]
            status, text, _ = self.run(["compare", *sides], "cuda")
            self.note(
                status == 3 and "memory ran out" in text,
                "memory that runs out: status %d, %s" % (status, text[-300:]),
            )

    # ---- speed ----

    def speed(self):
        """Both graphs of a pair run in float64, as the samples of a comparison do, with operands
        large enough to matter."""
        with tempfile.TemporaryDirectory() as folder:
            side = Products(folder, "products", 64 if self.o.quick or self.o.dry else 2048)
            cpu = self.run(["run", "--float64", "--propagate", side.path], "cpu")
            gpu = self.run(["run", "--float64", "--propagate", side.path], "cuda")
        self.note(cpu[0] == 0 and gpu[0] == 0, "products: %s / %s" % (cpu[1][-200:], gpu[1][-200:]))
        return {"cpu": cpu[2], "gpu": gpu[2]}


# ---- captures that are made here ----


class Made:
    """A capture whose leaves are float32 tensors of numbers that a formula gives."""

    def __init__(self, folder, name):
        self.name, self.path, self.nodes, self.files = (
            name,
            os.path.join(folder, name),
            [],
            {"inputs": {}, "weights": {}},
        )
        os.mkdir(self.path)

    def leaf(self, kind, name, shape, scale=1.0):
        self.nodes.append(
            {
                "id": name,
                "op": kind,
                "name": name,
                "outputs": [{"shape": shape, "dtype": "float32"}],
            }
        )
        n = 1
        for d in shape:
            n *= d
        # Quadratic residues: spread over [-1, 1) without a table, and the same on every machine.
        values = [scale * ((k * k + 7 * k) % 4099 / 2049.5 - 1) for k in range(n)]
        self.files["inputs" if kind == "input" else "weights"][name] = (
            shape,
            struct.pack("<%df" % n, *values),
        )
        return name

    def op(self, name, op, args, shape):
        wire = [{"ref": a} if isinstance(a, str) else a for a in args]
        self.nodes.append(
            {
                "id": name,
                "op": op,
                "args": wire,
                "kwargs": {},
                "outputs": [{"shape": shape, "dtype": "float32"}],
            }
        )
        return name

    def write(self, output):
        graph = {
            "format": "isomer-capture",
            "version": 1,
            "nodes": self.nodes,
            "outputs": [{"name": "y", "ref": output}],
        }
        with open(os.path.join(self.path, "graph.json"), "w", encoding="utf-8") as f:
            json.dump(graph, f)
        for file, tensors in self.files.items():
            head, at = {}, 0
            for name, (shape, data) in tensors.items():
                head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(data)]}
                at += len(data)
            text = json.dumps(head).encode()
            with open(os.path.join(self.path, file + ".safetensors"), "wb") as f:
                f.write(
                    struct.pack("<Q", len(text))
                    + text
                    + b"".join(data for _, data in tensors.values())
                )


class Norm(Made):
    """An RMS norm and a product, the norm by the kernel or written out."""

    def __init__(self, folder, name, eps, kernel):
        super().__init__(folder, name)
        x, w, v = (
            self.leaf("input", "x", [6, 32]),
            self.leaf("parameter", "w", [32]),
            self.leaf("parameter", "v", [32, 16], 0.3),
        )
        if kernel:
            n = self.op("n", "mine::rms_norm", [x, w, eps], [6, 32])
            self.nodes[-1].update(args=[], kwargs={"x": {"ref": x}, "w": {"ref": w}, "eps": eps})
        else:
            mean = self.op(
                "mean",
                "aten::mean.dim",
                [self.op("square", "aten::mul.Tensor", [x, x], [6, 32]), [-1], True],
                [6, 1],
            )
            scale = self.op(
                "scale",
                "aten::rsqrt",
                [self.op("sum", "aten::add.Scalar", [mean, eps], [6, 1])],
                [6, 1],
            )
            n = self.op(
                "n",
                "aten::mul.Tensor",
                [self.op("scaled", "aten::mul.Tensor", [x, scale], [6, 32]), w],
                [6, 32],
            )
        self.write(self.op("y", "aten::mm", [n, v], [6, 16]))


class Squares(Made):
    """A product of a vector with itself, 2 GB in float64, `times` its sum."""

    def __init__(self, folder, name, times):
        super().__init__(folder, name)
        n = 16384
        x = self.leaf("input", "x", [n])
        rows = self.op("rows", "aten::reshape", [x, [n, 1]], [n, 1])
        y = self.op(
            "sum", "aten::sum", [self.op("square", "aten::mul.Tensor", [rows, x], [n, n])], []
        )
        self.write(self.op("y", "aten::mul.Scalar", [y, float(times)], []))


class Products(Made):
    def __init__(self, folder, name, n):
        super().__init__(folder, name)
        y = self.leaf("input", "x", [n, n], 1 / n)
        w = self.leaf("parameter", "w", [n, n], 1 / n)
        for k in range(8):
            y = self.op("y%d" % k, "aten::mm", [y, w], [n, n])
        self.write(y)


@contextlib.contextmanager
def occupied(spare):
    """Another process holds the GPU's memory but for `spare` bytes."""
    code = (
        "import sys, torch; free, _ = torch.cuda.mem_get_info(); keep = torch.empty(max(0, free - "
        "%d), dtype=torch.uint8, "
        "device='cuda'); torch.cuda.synchronize(); print('ready', flush=True); sys.stdin.read()"
        % spare
    )
    p = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        if p.stdout.readline().strip() != b"ready":
            raise SystemExit("gpu: the GPU's memory could not be occupied")
        yield
    finally:
        p.stdin.close()
        p.wait()


def machine(dry):
    if dry:
        return {"device": "the CPU as a device"}
    import torch

    return {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "memory": torch.cuda.mem_get_info()[1],
    }


def table(figures):
    lines = [
        "| step | passed | failed | seconds | of processes on the CPU | on the device |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, s in figures["steps"].items():
        times = ["%.1f" % s[k] if k in s else "–" for k in ("cpu", "gpu")]
        lines.append(
            "| %s | %d | %d | %.1f | %s | %s |"
            % (name, s["passed"], s["failed"], s["seconds"], *times)
        )
    return "%s\n\n%s\n" % (
        ", ".join("%s: %s" % kv for kv in figures["machine"].items()),
        "\n".join(lines),
    )


def main():
    a = argparse.ArgumentParser(description="--device cuda against the CPU")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build-gpu", "isomer"))
    a.add_argument("--out", required=True)
    a.add_argument("--dry", action="store_true")
    a.add_argument("--quick", action="store_true")
    a.add_argument("--jobs", type=int, default=min(6, os.cpu_count() or 1))
    options = a.parse_args()
    options.isomer = os.path.abspath(options.isomer)
    os.makedirs(options.out, exist_ok=True)
    c = Campaign(options)
    c.figures["machine"] = machine(options.dry)
    for name in ("pairs", "kernel", "memory", "speed", "rules", "small"):
        c.step(name, getattr(c, name))
    with open(os.path.join(options.out, "gpu.json"), "w", encoding="utf-8") as f:
        json.dump(c.figures, f, indent=1)
    with open(os.path.join(options.out, "gpu.md"), "w", encoding="utf-8") as f:
        f.write(table(c.figures))
    print("%d passed, %d failed" % (c.passed, c.failed))
    return 1 if c.failed or not c.passed else 0


if __name__ == "__main__":
    sys.exit(main())
