#!/usr/bin/env python3
"""The known bugs (models/bugs): each faulty pair is `different` with the place at which it is wrong
as first divergence, each correct twin `equivalent`.

    bugs.py [--isomer build/isomer] [--quick] [--captures DIR] [--only TEXT] [--table FILE]

Without --quick the script that --repro writes of each must run alone and end with status 1.

The captures are made by models/bugs/make.py in a temporary folder (in DIR, which is kept, where
that is given: what is there is not made again). --table writes what was found as Markdown. The last
line is `N passed, N failed`."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import commands  # noqa: E402

MAKE = os.path.join(ROOT, "models", "bugs", "make.py")
VERDICT = {0: "equivalent", 1: "different", 2: "error", 3: "undecided"}
QUICK = (
    "03-gemma-gelu",
    "07-gemma2-window",
    "09-phi-base",
    "10-llama4-cast",
    "11-mistral-position",
    "12-phi35-factors",
    "two-bugs",
)

# The place, as `operator scope` or `leaf name`, of the changed node or of its partner on the other
# side; then the block that it is in.
Q = "@q"  # of the operators between the projection and the attention only those that work on q
BUGS = {
    # The right's operators are of methods that the ranks' module calls: they have its scope.
    "01-internlm2-wqkv": (
        "left",
        r"aten::(view|split\S*) model\.layers\.0\.attention(\.wqkv)?$",
        r"model\.layers\.0\.attention",
    ),
    "02-olmo-ff-proj": (
        "right",
        r"aten::chunk model\.transformer\.blocks\.0\.mlp$",
        r"blocks\.0\.mlp",
    ),
    "03-gemma-gelu": ("both", r"aten::gelu model\.layers\.0\.mlp\.act_fn$", r"layers\.0\.mlp"),
    "04-gptj-rotary-pairs": (
        "right",
        Q + r"aten::\S+ transformer\.h\.0\.attn\.rotary_emb$",
        r"transformer\.h\.0\.attn",
    ),
    "05-glm-rotary-all": (
        "right",
        Q + r"aten::\S+ model\.layers\.0\.self_attn\.rotary_emb$",
        r"layers\.0\.self_attn",
    ),
    "05-glm-rotary-quarter": (
        "right",
        Q + r"aten::\S+ model\.layers\.0\.self_attn\.rotary_emb$",
        r"layers\.0\.self_attn",
    ),
    "06-cohere-rows": (
        "right",
        r"aten::index_select model\.layers\.0\.self_attn\.rotary_emb$",
        r"layers\.0\.self_attn",
    ),
    "07-gemma2-window": (
        "right",
        r"vllm::unified_attention_with_output model\.layers\.0\.self_attn\.attn$",
        r"layers\.0\.self_attn",
    ),
    "08-qwen2vl-unloaded": (
        "both",
        r"leaf model\.layers\.1\.self_attn\.o_proj\.weight$",
        r"layers\.1\.self_attn",
    ),
    "08-qwen2vl-swapped": (
        "right",
        r"(leaf|aten::linear) model\.layers\.0\.mlp\.gate_up_proj\S*$",
        r"layers\.0\.mlp",
    ),
    "09-phi-base": (
        "right",
        r"(aten::index_select model\.layers\.0\.self_attn\.rotary_emb|leaf \S+cos_sin_cache)$",
        r"layers\.0\.self_attn",
    ),
    "09-phi-rows": (
        "right",
        r"aten::index_select model\.layers\.0\.self_attn\.rotary_emb$",
        r"layers\.0\.self_attn",
    ),
    "10-llama4-cast": (
        "right",
        r"aten::to\.dtype vision_model\.model\.layers\.0\.self_attn\.rotary_emb$",
        r"layers\.0\.self_attn",
    ),
    "11-mistral-position": ("right", r"aten::clamp $", r"aten::clamp"),
    "12-phi35-factors": (
        "right",
        r"aten::(gt\.Scalar|any|index_select) model\.layers\.0\.self_attn\.rotary_emb$",
        r"layers\.0\.self_attn",
    ),
    "13-gguf-lm-head": ("right", r"leaf rank[01]\.lm_head\.weight$", r"lm_head"),
    "14-gpt2-scale": (
        "right",
        r"aten::scaled_dot_product_attention transformer\.h\.0\.attn$",
        r"h\.0\.attn",
    ),
    "14-gpt2-layer-scale": (
        "right",
        r"aten::scaled_dot_product_attention transformer\.h\.1\.attn$",
        r"h\.1\.attn",
    ),
    "15-gpt2-scale": (
        "right",
        r"vllm::unified_attention_with_output transformer\.h\.0\.attn\.attn$",
        r"h\.0\.attn",
    ),
    "16-bigcode-scale": (
        "right",
        r"vllm::unified_attention_with_output transformer\.h\.0\.attn\.attn$",
        r"h\.0\.attn",
    ),
    "17-qwen-logn-4": ("left", r"aten::mul\.Tensor transformer\.h\.0\.attn$", r"h\.0\.attn"),
    "17-qwen-logn-8": ("left", r"aten::mul\.Tensor transformer\.h\.0\.attn$", r"h\.0\.attn"),
    "18-phimoe-jitter": (
        "both",
        r"aten::gt\.Scalar model\.layers\.0\.mlp\.(router|experts)$",
        r"layers\.0\.mlp",
    ),
    "19-olmoe-clip-1": (
        "left",
        r"aten::clamp model\.layers\.0\.self_attn$",
        r"layers\.0\.self_attn",
    ),
    "20-jais-alibi": (
        "right",
        r"vllm::unified_attention_with_output transformer\.h\.0\.attn\.attn$",
        r"h\.0\.attn",
    ),
    "21-phi-qk-norm": (
        "left",
        r"aten::layer_norm model\.layers\.0\.self_attn\.q_layernorm$",
        r"layers\.0\.self_attn",
    ),
}
# The one change that explains it, where one does.
HINTS = {
    "03-gemma-gelu": r"approximate is \"tanh\" on the left and \"none\" on the right$",
    "04-gptj-rotary-pairs": (
        r"on the right its halves are the first and the second part, and "
        r"would "
        r"have to be every second element$"
    ),
    "05-glm-rotary-all": r".* taken apart otherwise: by .*end 8\).* on the left, by .*end 16\D",
    "05-glm-rotary-quarter": r".* taken apart otherwise: by .*end 8\).* on the left, by .*end 4\D",
    "07-gemma2-window": r"(on the right )?sliding_window is none, and would have to be 4$",
    "08-qwen2vl-swapped": r".*gate_proj and .*up_proj are exchanged in .*gate_up_proj$",
    "10-llama4-cast": r"on the right the cast leaves the imaginary part out$",
    "11-mistral-position": r"on the right clamp is applied, and on the left it is not$",
    "12-phi35-factors": r"(on the right )?other is 8, and would have to be 7$",
    "14-gpt2-scale": r"(on the right )?scale is 0\.25, and would have to be 1\.0$",
    "15-gpt2-scale": r"(on the right )?scale is 0\.25, and would have to be 1\.0$",
    "16-bigcode-scale": r"(on the right )?scale is 0\.25, and would have to be 1\.0$",
    "18-phimoe-jitter": r"other is 0\.4 on the left and 0\.02 on the right$",
    "19-olmoe-clip-1": r"on the left clamp is applied, and on the right it is not; the same at ",
    "20-jais-alibi": r"(on the right )?alibi_slopes is \(list .*\), and would have to be none$",
}
# Two bugs in different layers: both are listed, and nothing else.
TWO = ["aten::add.Tensor model.layers.0.input_layernorm", "aten::gelu model.layers.1.mlp.act_fn"]
# Why no one change explains the others.
UNHINTED = {
    "01-internlm2-wqkv": (
        "each rank would have to gather the other's part and to take other rows "
        "of it: the view, the sizes of its parts and a collective at once"
    ),
    "02-olmo-ff-proj": "the rows that a rank would have to read are another rank's: neither its "
    "leaf nor its operators have them; what is named is where "
    "the other side has a function of one half and this one halves once more",
    "05-glm-rotary-*": "the width of the rotation stands in the ends of several parts, in a table "
    "of other frequencies and in what is left unrotated: "
    "no single one of them mends it",
}
# No sample that is drawn at the captured scale shows it; nothing but a proof may say that it is not
# there.
UNSEEN = "19-olmoe-clip-8"


def python():
    """A Python with torch and Transformers, or None."""
    for p in (os.path.join(ROOT, ".venv", "bin", "python3"), sys.executable):
        if os.path.exists(p) and commands.has_torch(p):
            wanted = "import transformers, safetensors"
            if commands.python(["-c", wanted], executable=p).returncode == 0:
                return p
    return None


def graph_of(folder):
    with open(os.path.join(folder, "graph.json"), encoding="utf-8") as f:
        return {n["id"]: n for n in json.load(f)["nodes"]}


def place(graph, at):
    if at is None:
        return "-"
    n = graph[at["id"]]
    return "leaf " + n["name"] if "args" not in n else "%s %s" % (at["op"], at["scope"] or "")


def refs(v):
    if isinstance(v, dict):
        return [v["ref"]] if "ref" in v else [r for x in v.values() for r in refs(x)]
    return [r for x in v for r in refs(x)] if isinstance(v, list) else []


def works_on_q(graph, id):
    """Behind the first part of a split projection."""
    todo, seen = [id], set()
    while todo:
        n = graph[todo.pop()]
        if (
            n["op"] == "getitem"
            and n["args"][1] == 0
            and "linear" in graph[refs(graph[n["args"][0]["ref"]]["args"])[0]]["op"]
        ):
            return True
        if "args" in n and n["op"] != "aten::linear" and n["id"] not in seen:
            seen.add(n["id"])
            todo += refs(n["args"]) + refs(n["kwargs"])
    return False


def is_at(graph, at, pattern):
    if at is None:
        return False
    wanted = pattern[len(Q) :] if pattern.startswith(Q) else pattern
    return re.match(wanted, place(graph, at)) is not None and (
        wanted == pattern or works_on_q(graph, at["id"])
    )


class Run:
    def __init__(self, isomer, captures, timeout, scripts):
        self.isomer, self.captures, self.timeout = isomer, captures, timeout
        self.scripts = scripts  # a Python with torch to run what --repro writes, or None
        self.failed, self.passed, self.rows = 0, 0, []

    def compare(self, name, left, right, *options):
        a, b = (os.path.join(self.captures, name, s) for s in (left, right))
        start = time.monotonic()
        p = subprocess.run(
            [self.isomer, "compare", a, b, "--json", "-", "--timeout", str(self.timeout), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        verdict = VERDICT.get(p.returncode, "status %d" % p.returncode)
        said = p.stderr.decode("utf-8", "replace").strip().rsplit("\n", 1)[-1]
        return (
            verdict,
            json.loads(p.stdout) if p.returncode in (0, 1, 3) else None,
            said,
            time.monotonic() - start,
        )

    def report(self, ok, what, said):
        self.passed, self.failed = self.passed + ok, self.failed + (not ok)
        print("%-6s %-36s %s" % ("ok" if ok else "FAILED", what, said), flush=True)

    def script(self, name):
        """The script that --repro writes runs alone, and ends with status 1."""
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "bug.py")
            self.compare(name, "reference", "faulty", "--repro", path)
            if not os.path.exists(path):
                return self.report(False, name + ", its script", "none was written")
            p = subprocess.run(
                [self.scripts, path],
                cwd=tmp,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            said = (p.stdout + p.stderr).decode("utf-8", "replace").strip().rsplit("\n", 1)[-1]
            self.report(
                p.returncode == 1 and b"Traceback" not in p.stderr, name + ", its script", said
            )

    def faulty(self, name):
        verdict, r, said, seconds = self.compare(name, "reference", "faulty")
        side, pattern, block = BUGS[name]
        row = {
            "bug": name,
            "verdict": verdict,
            "how": "-",
            "place": "-",
            "hint": "",
            "size": "",
            "seconds": seconds,
        }
        if verdict == "different" and r["divergences"]:
            d, graphs = (
                r["divergences"][0],
                [graph_of(os.path.join(self.captures, name, s)) for s in ("reference", "faulty")],
            )
            at = [is_at(graphs[k], d[s], pattern) for k, s in enumerate(("left", "right"))]
            exact = {"left": at[0], "right": at[1], "both": all(at)}[side]
            near = any(
                re.search(block, place(graphs[k], d[s])) for k, s in enumerate(("left", "right"))
            )
            row["how"] = "exact" if exact else "same block" if near else "elsewhere"
            shown = 0 if side == "left" else 1
            row["place"] = place(graphs[shown], d[("left", "right")[shown]])
            row["hint"], row["size"] = d["hint"] or "", r["counterexample"]["max_rel"]
        hinted = name not in HINTS or re.match(HINTS[name], row["hint"]) is not None
        self.rows.append(row)
        self.report(
            verdict == "different" and row["how"] == "exact" and hinted,
            name,
            "%s at %s (%s), %.1f s%s"
            % (
                verdict,
                row["place"],
                row["how"],
                seconds,
                "" if hinted else "; hint: " + row["hint"],
            ),
        )

    def twin(self, name, left, right):
        verdict, r, said, seconds = self.compare(name, left, right)
        self.report(
            verdict == "equivalent", "%s, %s" % (name, right), "%s, %.1f s" % (said, seconds)
        )
        if right == "twin" and self.rows and self.rows[-1]["bug"] == name:
            self.rows[-1]["twin"] = (
                "%s, %s" % (verdict, r["evidence"]) if verdict == "equivalent" else verdict
            )

    def two(self, name):
        verdict, r, said, seconds = self.compare(name, "reference", "faulty")
        graph = graph_of(os.path.join(self.captures, name, "faulty"))
        found = [place(graph, d["right"]) for d in r["divergences"]] if r else []
        self.report(
            verdict == "different" and found == TWO,
            "two bugs: both, and nothing else",
            "%s: %s" % (verdict, "; ".join(found)),
        )
        index = [d["index"] for d in r["divergences"]] if r else []
        ok = len(index) == 2 and all(
            i and all(isinstance(x, int) and x >= 0 for x in i) for i in index
        )
        self.report(ok, "two bugs: where the difference is largest", "%s" % index)

    def unseen(self, name):
        start = time.monotonic()
        p = subprocess.Popen(
            [
                self.isomer,
                "compare",
                *(os.path.join(self.captures, name, s) for s in ("reference", "faulty")),
                "-q",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            out, _ = p.communicate(timeout=60)
        except subprocess.TimeoutExpired:  # a long proof: what is known so far
            p.send_signal(signal.SIGINT)
            try:
                out, _ = p.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                p.kill()
                p.communicate()
                print(
                    (
                        "known gap %s: no answer in a minute: a proof of many large elements is "
                        "not interrupted"
                    )
                    % name,
                    flush=True,
                )
                self.rows.append(
                    {
                        "bug": name,
                        "verdict": "no answer in 60 s",
                        "how": "-",
                        "place": "-",
                        "hint": "no sample shows it",
                        "size": "",
                        "seconds": 60.0,
                    }
                )
                return
        said, seconds = (
            out.decode("utf-8", "replace").strip().rsplit("\n", 1)[-1],
            time.monotonic() - start,
        )
        verdict = (
            "undecided"
            if "UNDECIDED" in said
            else VERDICT.get(p.returncode, "status %d" % p.returncode)
        )
        self.report(verdict in ("different", "undecided"), name, "%s, %.1f s" % (said, seconds))
        self.rows.append(
            {
                "bug": name,
                "verdict": verdict,
                "how": "-",
                "place": "-",
                "hint": "shown by draws of another scale"
                if verdict == "different"
                else "no sample shows it",
                "size": "",
                "seconds": seconds,
            }
        )

    def all(self, names):
        for name in names:
            if name == "two-bugs":
                self.two(name)
            elif name == UNSEEN:
                self.unseen(name)
            else:
                self.faulty(name)
                if self.scripts:
                    self.script(name)
            has = [
                s for s in ("twin", "mended") if os.path.isdir(os.path.join(self.captures, name, s))
            ]
            other = os.path.isdir(os.path.join(self.captures, name, "twin-reference"))
            for s in has if name != UNSEEN else ():
                self.twin(name, "twin-reference" if other and s == "twin" else "reference", s)


def table(rows, path):
    number = {}
    for r in rows:
        number.setdefault(r["bug"][:2], []).append(r)
    exact = sum(any(r["how"] == "exact" for r in rs) for rs in number.values())
    out = [
        "# Known bugs, and what is said of them",
        "",
        (
            "Bugs that were found in published model code, rebuilt by `models/bugs/make.py` at a "
            "small size and compared with their references by"
        ),
        (
            "`tests/cli/bugs.py --table docs/bugs.md`, which wrote this page. *Place* is that of "
            "the first divergence, on the side that shows the change:"
        ),
        (
            "*exact* is the changed operator or leaf (views and casts beside it aside). *Size* is "
            "the largest relative difference of the outputs on the"
        ),
        (
            "witness. *Twin* is the same program without the fault, or on a configuration in which "
            "it cannot show. Seconds are of one run."
        ),
        "",
        "| bug | verdict | place | | hint | size | twin | s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for r in rows:
        size = (
            "%.2g" % r["size"]
            if isinstance(r["size"], float)
            else "not a number"
            if r["how"] == "exact"
            else ""
        )
        hint = re.sub(r"\S*/%s/" % re.escape(r["bug"]), "", r["hint"]).replace("|", "\\|")
        out.append(
            "| %s | %s | `%s` | %s | %s | %s | %s | %.1f |"
            % (
                r["bug"],
                r["verdict"],
                r["place"],
                r["how"],
                hint,
                size,
                r.get("twin", ""),
                r["seconds"],
            )
        )
    out += ["", "Where no one change explains it:", ""]
    out += ["- %s: %s." % i for i in sorted(UNHINTED.items())]
    out += [
        "",
        (
            "Of %d bugs %d are different, %d with the place exactly. Where a bug has several "
            "variants, one of them counts."
        )
        % (
            len(number),
            sum(any(r["verdict"] == "different" for r in rs) for rs in number.values()),
            exact,
        ),
        "",
    ]
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(out))


def main():
    a = argparse.ArgumentParser(description="the known bugs")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--captures")
    a.add_argument("--only", action="append", default=[])
    a.add_argument("--quick", action="store_true", help="a few of them")
    a.add_argument("--table")
    a.add_argument("--timeout", type=int, default=120)
    a = a.parse_args()
    with tempfile.TemporaryDirectory(prefix="isomer-bugs-") as tmp:
        folder = a.captures or tmp
        names = [
            n
            for n in list(BUGS) + [UNSEEN, "two-bugs"]
            if (not a.quick or n in QUICK) and (not a.only or any(o in n for o in a.only))
        ]
        names.sort()
        missing = [n for n in names if not os.path.isdir(os.path.join(folder, n))]
        py = python() if missing else None
        if missing and not py:
            print("no Python with torch, transformers and safetensors: skipped")
            return 0
        if missing:
            made = commands.python([MAKE, folder, *missing], executable=py)
            if made.returncode:
                print(made.stderr, file=sys.stderr)
                return 1
        run = Run(a.isomer, folder, a.timeout, None if a.quick else python())
        run.all(names)
    if a.table:
        table([r for r in run.rows], a.table)
    print("%d passed, %d failed" % (run.passed, run.failed))
    return 1 if run.failed or not run.passed else 0


if __name__ == "__main__":
    sys.exit(main())
