"""Training steps: what is recorded of memory is what memory holds, ranks meet as they did, and a
step on two ranks is the step on one."""

import json
import os
import random
import subprocess
import tempfile
import unittest

import collectives
import commands
import torch

from isomer_capture.errors import CaptureError
from isomer_capture.files import read_safetensors
from isomer_capture.train.join import Join, prune
from isomer_capture.train.memory import layout
from isomer_capture.train.recorder import Recorder
from isomer_capture.train.replay import replay

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
UNRECORDED = ("scatter",)  # comm.py has no place for it
PLANS = os.path.join(ROOT, "tests", "train", "plans.py")


def recorded(program, *leaves):
    """(what the program returned, what its recording computes)"""
    recorder = Recorder(0)
    for k, t in enumerate(leaves):
        recorder.leaf("input", "x%d" % k, t)
    with recorder:
        out = program(*leaves)
    said = [recorder.memory.read(t) for t in out]
    nodes = prune(recorder.graph.nodes, [{"ref": v.id} for v in said])
    have = replay(nodes, {id: t for id, (_, _, t) in recorder.leaves.items()})
    return out, [have[v.id] for v in said], nodes


def any_view(r, t):
    """A view of t that an operator makes."""
    d = r.randrange(max(1, t.dim()))
    if t.dim() == 0:
        return t.view(1)
    n = t.shape[d]
    a = r.randrange(n)
    b = r.randint(a + 1, n)
    ways = [
        lambda: t.transpose(0, d),
        lambda: t.narrow(d, a, b - a),
        lambda: t.select(d, a) if t.dim() > 1 else t,
        lambda: t[a::2] if d == 0 else t,
        lambda: t.unsqueeze(d),
        lambda: t.view(-1) if t.is_contiguous() else t,
        lambda: t.split([a, n - a], d)[0] if a else t,
        lambda: t.view(2, -1) if t.is_contiguous() and t.numel() % 2 == 0 else t,
        lambda: torch.as_strided(t, (2,), (1,), t.storage_offset()) if t.numel() > 1 else t,
    ]
    return r.choice(ways)()


def dense(t):
    return layout(t.shape, t.stride()) is not None


def drawn(seed):
    """A program of buffers, views and writes in place."""

    def program(x, y):
        r = random.Random(seed)
        flat = torch.empty(24)
        flat.zero_()
        held = [x, y, flat, flat.view(4, 6), flat[:8].view(2, 4)]
        for _ in range(r.randint(4, 12)):
            t = r.choice(held)
            kind = r.randrange(6)
            if kind < 2:
                held.append(any_view(r, t))
            elif kind == 2 and t.numel() and dense(t):
                t.mul_(0.5).add_(1)
            elif kind == 3 and t.numel() and dense(t):
                same = [s for s in held if s.shape == t.shape]
                t.copy_(r.choice(same).clone())
            elif kind == 4:
                held.append(t * 2 + 1)
            elif kind == 5 and t.numel() and dense(t):
                t.fill_(float(r.randrange(5)))
        return held

    return program


class MemoryTest(unittest.TestCase):
    def test_a_recording_computes_what_memory_holds(self):
        for seed in range(300):
            made = torch.Generator().manual_seed(seed)
            x, y = torch.randn(4, 6, generator=made), torch.randn(6, generator=made)
            out, again, _ = recorded(drawn(seed), x, y)
            for k, (a, b) in enumerate(zip(out, again)):
                self.assertTrue(torch.equal(a, b), "seed %d, tensor %d" % (seed, k))

    def test_a_bucket_leaves_no_trace(self):
        def program(a, b):
            bucket = torch.empty(10)
            parts = [bucket[:6].view(2, 3), bucket[6:]]
            for t, part in zip((a, b), parts):
                part.copy_(t)
            return [parts[0] * 2, bucket[6:].clone()]

        out, again, nodes = recorded(program, torch.randn(2, 3), torch.randn(4))
        self.assertTrue(all(torch.equal(s, t) for s, t in zip(out, again)))
        self.assertEqual([n["op"] for n in nodes], ["input", "input", "aten::mul.Tensor"])

    def test_a_number_that_is_computed_with_stays_what_it_is_computed_from(self):
        def program(x, g):
            scale = 0.5 / (g.norm().item() ** 0.5 + 1.0)
            return [x * scale, g.add(x, alpha=-scale), scale / (x + 5.0), x.div(max(scale, 0.0))]

        out, again, nodes = recorded(program, *torch.randn(2, 4).unbind())
        for a, b in zip(out, again):
            self.assertTrue(torch.allclose(a, b))
        self.assertIn("aten::linalg_vector_norm", [n["op"] for n in nodes])

    def test_what_is_done_to_a_bucket_is_done_to_each_tensor(self):
        def program(a, b):
            bucket = torch.cat([torch.empty(6), torch.empty(4)])
            bucket[:6].copy_(a.view(-1))
            bucket[6:].copy_(b)
            half = bucket.to(torch.bfloat16).div_(2)
            return [bucket.copy_(half)[:6].view(2, 3).clone()]

        out, again, nodes = recorded(program, torch.randn(2, 3), torch.randn(4))
        self.assertTrue(all(torch.equal(s, t) for s, t in zip(out, again)))
        shapes = [n["outputs"][0]["shape"] for n in nodes if n["op"] == "aten::div.Tensor"]
        self.assertEqual(shapes, [[6]])  # the other tensor's is needed by nothing

    def test_a_fused_optimizer_is_its_formula(self):
        def program(p, g, m, v):
            p, m, v, step = p.clone(), m.clone(), v.abs(), torch.tensor(4.0)
            said = dict(lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-8)
            more = dict(amsgrad=False, maximize=False)
            torch._fused_adamw_([p], [g], [m], [v], [], [step], **said, **more)
            return [p, m, v]

        out, again, nodes = recorded(program, *torch.randn(4, 5).unbind())
        for a, b in zip(out, again):
            self.assertTrue(torch.allclose(a, b))
        self.assertIn("aten::addcdiv", [n["op"] for n in nodes])

    def test_what_has_no_functional_form_is_refused(self):
        for program, words in (
            (lambda x: [torch.rand(3)], "draws random numbers"),
            (lambda x: [x.view(torch.int32)], "is read as"),
            (lambda x: [x.expand(2, 3).add_(1)], ""),
        ):
            with self.assertRaises((CaptureError, RuntimeError)) as caught:
                recorded(program, torch.randn(3))
            self.assertIn(words, str(caught.exception))

    def test_what_is_in_flight_is_waited_for(self):
        group = torch.distributed
        store = group.HashStore()
        group.init_process_group("gloo", store=store, rank=0, world_size=1)
        try:
            for name in collectives.names():
                for late in (True, False):
                    self.in_flight(name, late, lambda comes, goes: [t.sum() for t in comes])
                    self.in_flight(name, late, lambda comes, goes: [t.zero_() for t in goes])
                self.in_flight(name, True, lambda comes, goes: [t.sum() for t in goes])
        finally:
            group.destroy_process_group()

    def in_flight(self, name, late, use):
        """use(what comes, what goes) behind the wait, or before it."""
        used = []

        def program():
            work, comes, goes = collectives.post(name, 1)
            if late:
                work.wait()
            used.extend(use(comes, goes))
            if not late:
                work.wait()
            return []

        if name in UNRECORDED:
            return
        try:
            recorded(program)
        except CaptureError as e:
            self.assertFalse(late, e)
            self.assertRegex(str(e), r"\(test_train.py:\d+|collectives.py:\d+\).*has not waited")
        else:
            self.assertTrue(
                late or not used or name == "broadcast", name
            )  # which brings its root none

    def test_what_a_step_leaves_in_flight_is_refused(self):
        group = torch.distributed
        group.init_process_group("gloo", store=group.HashStore(), rank=0, world_size=1)
        try:
            with self.assertRaisesRegex(CaptureError, "is left by the step, and the program has"):
                recorded(lambda x: [] if group.all_reduce(x, async_op=True) else [], torch.ones(2))
        finally:
            group.destroy_process_group()

    def test_a_number_that_is_read_is_a_guard(self):
        recorder = Recorder(0)
        x = torch.tensor(3.0)
        recorder.leaf("input", "x", x)
        with recorder:
            y = torch.ones(2) * x.item()
        self.assertEqual(recorder.guards[0]["value"], 3.0)
        self.assertEqual(y.tolist(), [3.0, 3.0])


def rank(*comms):
    """A recording: one leaf, then collectives (kind, group, more, shape)."""
    meta = {"shape": [2], "dtype": "float32"}
    nodes = [{"id": "x", "op": "input", "name": "x", "outputs": [meta]}]
    for k, (kind, said, n) in enumerate(comms):
        given = [] if kind in ("receive", "barrier") else [{"ref": "x"}]
        out = [] if kind in ("send", "barrier") else [dict(meta, shape=[n])]
        nodes.append(
            {
                "id": "c%d" % k,
                "op": "comm::" + kind,
                "args": [given],
                "kwargs": {},
                "outputs": out,
                "comm": said,
            }
        )
    return {"nodes": nodes}


class JoinTest(unittest.TestCase):
    def refused(self, words, *ranks):
        with self.assertRaises(CaptureError) as caught:
            Join(ranks).run()
        self.assertIn(words, str(caught.exception))

    def test_ranks_meet_by_group_and_order(self):
        total = ("all_reduce", {"group": [0, 1], "op": "sum"}, 2)
        nodes = Join([rank(total, total), rank(total, total)]).run()
        self.assertEqual([n["op"] for n in nodes].count("dist::all_reduce"), 2)

    def test_order_between_groups_does_not_matter(self):
        a = ("all_reduce", {"group": [0, 1], "op": "sum"}, 2)
        b = ("barrier", {"group": [1, 0]}, 0)
        self.assertEqual(len(Join([rank(a, b), rank(b, a)]).run()), 3)

    def test_what_does_not_fit_is_said(self):
        total = ("all_reduce", {"group": [0, 1], "op": "sum"}, 2)
        mean = ("all_reduce", {"group": [0, 1], "op": "avg"}, 2)
        longer = ("all_reduce", {"group": [0, 1], "op": "sum"}, 3)
        gather = ("all_gather", {"group": [0, 1]}, 4)
        self.refused(
            "rank 0 calls all_reduce(sum), rank 1 all_reduce(avg)", rank(total), rank(mean)
        )
        self.refused("rank 0 calls all_reduce(sum), rank 1 all_gather", rank(total), rank(gather))
        self.refused("rank 0 has float32 [2], rank 1 float32 [3]", rank(total), rank(longer))
        self.refused("rank 1 never comes to collective 0", rank(total), rank())

    def test_messages_meet_by_sender_receiver_and_tag(self):
        send = ("send", {"group": [0, 1], "peer": 1, "tag": 0}, 0)
        receive = ("receive", {"group": [0, 1], "peer": 0, "tag": 0}, 2)
        other = ("receive", {"group": [0, 1], "peer": 0, "tag": 1}, 2)
        longer = ("receive", {"group": [0, 1], "peer": 0, "tag": 0}, 3)
        self.assertEqual(len(Join([rank(send), rank(receive)]).run()), 2)
        self.refused("is never received", rank(send), rank(other))
        self.refused("rank 0 never sends what rank 1 waits for", rank(), rank(receive))
        self.refused(
            "rank 0 sends float32 [2] and rank 1 expects float32 [3]", rank(send), rank(longer)
        )


# Memory that C code writes, which depends on a parameter, or does not, and a module's own state.
PAST = """
import torch

def step(run, hidden, model):
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    def one(x):
        y = model(x)
        h = torch.from_numpy(hidden(model).numpy().copy())
        loss = (y * h).sum()
        loss.backward()
        sgd.step()
        sgd.zero_grad()
        return {"loss": loss.detach()}
    run.step(one, model, sgd, inputs={"x": torch.ones(2, 3)})

def past(run):
    step(run, lambda m: m.weight.detach()[0, :3], torch.nn.Linear(3, 3))

def fixed(run):
    step(run, lambda m: torch.arange(3.0), torch.nn.Linear(3, 3))

def counted(run):
    step(run, lambda m: torch.arange(3.0), torch.nn.BatchNorm1d(3))

# What a step leaves to the next one.

class Held(torch.nn.Linear):
    def __init__(self, keep):
        super().__init__(3, 3)
        self.keep = keep
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        y = super().forward(x)
        with torch.no_grad():
            self.mean.mul_(self.keep).add_(y.mean(0), alpha=1 - self.keep)
        return y

def kept(run, keep=0.9, drop="last", norm=None, average=None, named=False):
    model = norm or Held(keep)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    mean = torch.zeros_like(model.weight)
    def one(x):
        if drop == "first":
            sgd.zero_grad()
        model(x).pow(3).sum().backward()
        sgd.step()
        if drop == "zeros":
            sgd.zero_grad(set_to_none=False)
        elif drop == "last":
            sgd.zero_grad()
        if average:
            mean.lerp_(model.weight.detach(), average)
    states = {"average.weight": mean} if named else None
    run.step(one, model, sgd, inputs={"x": torch.arange(6.0).reshape(2, 3)}, states=states)

def kept_first(run):
    kept(run, drop="first")

def kept_zeros(run):
    kept(run, drop="zeros")

def kept_never(run):
    kept(run, drop="never")

def kept_longer(run):
    kept(run, keep=0.95)

def kept_norm(run):
    kept(run, norm=torch.nn.BatchNorm1d(3))

def kept_norm_faster(run):
    kept(run, norm=torch.nn.BatchNorm1d(3, momentum=0.2))

def kept_average(run):
    kept(run, average=0.1)

def kept_average_slower(run):
    kept(run, average=0.05)

def kept_average_named(run):
    kept(run, average=0.1, named=True)

# What a step does when it runs again.

def repeated(run, every=1, branch=None):
    model = torch.nn.Linear(3, 3)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    falling = torch.optim.lr_scheduler.ExponentialLR(sgd, 0.5)
    calls = []
    def one(x):
        calls.append(1)
        sgd.zero_grad()
        loss = model(x).pow(2).sum()
        if branch is not None and model.weight.flatten()[branch].item() > 0:
            loss = loss + model.weight.pow(2).sum()
        loss.backward()
        if len(calls) % every == 0:
            sgd.step()
            falling.step()
    run.step(one, model, sgd, inputs={"x": torch.ones(2, 3)})

def repeated_by_two(run):
    repeated(run, every=2)

def repeated_by_three(run):
    repeated(run, every=3)

def repeated_as_read(run):
    from isomer_capture.train.run import values
    one, two = (values("weight", (3, 3), torch.float32, seed).flatten() > 0 for seed in (0, 1))
    repeated(run, branch=(one != two).nonzero()[0].item())
"""


class StepTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def train(self, script, function, world, *more):
        out = os.path.join(self.folder.name, "%s%d%s" % (function, world, "".join(more)))
        words = ["train", script + ":" + function, "--world", world, "-o", out, *more]
        return out, commands.run(words, timeout=600)

    def captured(self, function, world):
        out, p = self.train(PLANS, function, world)
        self.assertEqual(p.returncode, 0, p.stderr)
        return out

    def verdict(self, left, right):
        p = subprocess.run(
            [os.environ["ISOMER"], "compare", left, right, "--refine"],
            capture_output=True,
            text=True,
            timeout=600,
        )
        return p.stdout.strip().rsplit("\n", 1)[-1]

    def test_a_data_parallel_step_is_the_step_and_one_without_its_sum_is_not(self):
        one = self.captured("mlp", 1)
        self.assertIn("EQUIVALENT", self.verdict(one, self.captured("mlp", 2)))
        self.assertIn("DIFFERENT", self.verdict(one, self.captured("mlp_alone", 2)))

    def test_shards_of_a_step_compute_what_the_ranks_computed(self):
        with open(os.path.join(self.captured("sharded", 2), "graph.json")) as f:
            graph = json.load(f)
        ops = {n["op"] for n in graph["nodes"]}
        self.assertIn("dist::reduce_scatter", ops)
        self.assertNotIn("aten::as_strided", ops)
        self.assertFalse([n for n in graph["nodes"] if n["op"] == "constant"])

    def test_ranks_of_one_role_are_written_once_and_read_as_all_of_them(self):
        out, p = self.train(PLANS, "sharded", 2, "--rank", "roles")
        self.assertEqual(p.returncode, 0, p.stderr)
        every = self.captured("sharded", 2)
        graphs = []
        for folder in (out, every):
            with open(os.path.join(folder, "graph.json")) as f:
                graphs.append(json.load(f))
        self.assertEqual(graphs[0]["roles"]["ranks"], 2)
        self.assertIn("ids", graphs[0]["roles"]["own"])
        self.assertLess(len(graphs[0]["nodes"]), 0.6 * len(graphs[1]["nodes"]))
        self.assertEqual(self.verdict(every, out), "isomer: EQUIVALENT [proved]")

    def test_ranks_that_deviate_are_not_written_once(self):
        out, p = self.train(PLANS, "zero", 2, "--rank", "roles")
        self.assertEqual(p.returncode, 2, p.stdout)
        self.assertRegex(p.stderr, r"^isomer-capture: --rank roles: .* on rank ")
        self.assertFalse(os.path.exists(out))

    def test_errors_are_one_line(self):
        script = os.path.join(self.folder.name, "wrong.py")
        with open(script, "w") as f:
            f.write("def nothing(run): pass\ndef broken(run): run.what()\n")
        for given, function, words in (
            (script, "nothing", "without calling run.step()"),
            (script, "missing", "has no function missing"),
            (script, "broken", "rank 0: AttributeError"),
            (script + "x", "nothing", "there is no such file"),
            (os.path.join(ROOT, "LICENSE"), "nothing", "is no Python file"),
        ):
            out, p = self.train(given, function, 1)
            self.assertEqual(p.returncode, 2, p.stderr)
            self.assertEqual(p.stderr.count("\n"), 1, p.stderr)
            self.assertIn(words, p.stderr)
            self.assertFalse(os.path.exists(out))

    def test_memory_that_the_recorder_did_not_see_written_is_no_constant(self):
        script = os.path.join(self.folder.name, "past.py")
        with open(script, "w") as f:
            f.write(PAST)
        out, p = self.train(script, "past", 1)
        self.assertEqual(p.returncode, 2, p.stderr)
        self.assertIn("past.py:9 that no recorded operator has written", p.stderr)
        self.assertFalse(os.path.exists(out))
        for function in ("fixed", "counted"):
            out, p = self.train(script, function, 1)
            self.assertEqual(p.returncode, 0, p.stderr)

    def test_what_a_step_leaves_to_the_next_one_is_compared(self):
        script = os.path.join(self.folder.name, "past.py")
        with open(script, "w") as f:
            f.write(PAST)
        for left, right, verdict in (
            ("kept", "kept_first", "EQUIVALENT"),
            ("kept", "kept_zeros", "EQUIVALENT"),
            ("kept", "kept_never", "DIFFERENT"),  # gradients add up from step to step
            ("kept", "kept_longer", "DIFFERENT"),  # in a buffer
            ("kept_norm", "kept_norm", "EQUIVALENT"),
            ("kept_norm", "kept_norm_faster", "DIFFERENT"),  # in running statistics
            ("kept_average", "kept_average", "EQUIVALENT"),
            ("kept_average", "kept_average_slower", "DIFFERENT"),  # in memory that nobody named
        ):
            outs = [self.train(script, name, 1) for name in (left, right)]
            self.assertEqual([p.returncode for _, p in outs], [0, 0], outs)
            self.assertIn(verdict, self.verdict(*[out for out, _ in outs]), right)
        for function, name in (
            ("kept_average", "updated.memory.0"),
            ("kept_average_named", "updated.average.weight"),
        ):
            out, p = self.train(script, function, 1)
            with open(os.path.join(out, "graph.json")) as f:
                self.assertIn(name, [each["name"] for each in json.load(f)["outputs"]])

    def test_an_input_that_the_step_writes_to_is_said(self):
        script = os.path.join(self.folder.name, "input.py")
        with open(script, "w") as f:
            f.write(
                "import torch\n"
                "def masked(run):\n"
                "    model = torch.nn.Linear(3, 3)\n"
                "    def one(x):\n"
                "        x.masked_fill_(x > 3, 0)\n"
                "        model(x).sum().backward()\n"
                "    x = torch.arange(6.0).reshape(2, 3)\n"
                "    run.step(one, model, inputs={'x': x}, gradients=True)\n"
            )
        out, p = self.train(script, "masked", 1)
        with open(os.path.join(out, "graph.json")) as f:
            said = json.load(f)
        self.assertEqual(said["metadata"]["written_leaves"], ["x"])
        held = read_safetensors(os.path.join(out, "inputs.safetensors"))["x"]
        self.assertEqual(held.max(), 5)  # each run starts from the input as it was given

    def test_a_step_that_is_another_one_each_time_is_refused(self):
        script = os.path.join(self.folder.name, "past.py")
        with open(script, "w") as f:
            f.write(PAST)
        for function in ("repeated_by_two", "repeated_by_three"):
            out, p = self.train(script, function, 1)
            self.assertEqual(p.returncode, 2, p.stderr)
            self.assertIn("output updated.weight is computed in another way when", p.stderr)
            self.assertFalse(os.path.exists(out))
        for function in ("repeated", "repeated_as_read"):
            out, p = self.train(script, function, 1)
            self.assertEqual(p.returncode, 0, p.stderr)

    def test_a_folder_that_cannot_be_made_is_named(self):
        from isomer_capture.files import write_capture

        for out in (os.path.join(PLANS, "x"), "/proc/nothing/x"):
            with self.assertRaisesRegex(CaptureError, "^%s cannot be made: " % out):
                write_capture(out, {}, {}, [])


if __name__ == "__main__":
    unittest.main()
